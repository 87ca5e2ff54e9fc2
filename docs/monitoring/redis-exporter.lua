#!lua flags=no-writes,allow-stale,allow-oom
-- What redis-rl counts, for prometheus-redis-exporter: start it with `-script redis-exporter.lua`, and each field of INFO's
-- section `rl` becomes redis_script_values{key="rl_…"}. By itself the exporter asks for INFO ALL, which has no sections of modules.
-- A server without the module has no such fields.
--
-- A user for the exporter, who sees no key and no password; start the exporter with `-config-command -`, for CONFIG GET tells passwords:
--
-- ACL SETUSER exporter on >secret -@all +info +eval +ping +client|setname +slowlog|get +slowlog|len +latency|latest
local told = {}
for name, value in redis.call('INFO', 'rl'):gmatch('(rl_[%w_]+):(%d+)\r\n') do
    told[#told + 1] = name
    told[#told + 1] = value
end
return told
