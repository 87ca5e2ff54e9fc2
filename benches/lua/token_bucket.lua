-- A token bucket in a hash. KEYS[1]; ARGV: capacity, tokens a second, cost.
-- Replies allowed, capacity, remaining, retry after and reset in milliseconds, as RL.TOKENBUCKET does.
local capacity, rate, cost = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local state = redis.call('HMGET', KEYS[1], 'tokens', 'at')
local tokens, at = tonumber(state[1]) or capacity, tonumber(state[2]) or now
tokens = math.min(capacity, tokens + math.max(0, now - at) * rate / 1000)
local function until_there(wanted)
  return math.ceil((wanted - tokens) * 1000 / rate)
end
if tokens < cost then
  return { 0, capacity, math.floor(tokens), until_there(cost), until_there(capacity) }
end
tokens = tokens - cost
local reset = until_there(capacity)
redis.call('HSET', KEYS[1], 'tokens', tokens, 'at', now)
redis.call('PEXPIRE', KEYS[1], reset)
return { 1, capacity, math.floor(tokens), 0, reset }
