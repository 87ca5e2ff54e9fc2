-- The generic cell rate algorithm: a token bucket as one number, the time at which it is full again. KEYS[1]; ARGV: capacity,
-- tokens a second, cost. Replies allowed, capacity, remaining, retry after and reset in milliseconds.
local capacity, rate, cost = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local interval = 1000000 / rate
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local full = math.max(tonumber(redis.call('GET', KEYS[1])) or now, now)
local after = full + cost * interval
local room = now + capacity * interval - after
if room < 0 then
  local remaining = math.floor((now + capacity * interval - full) / interval)
  return { 0, capacity, remaining, math.ceil(-room / 1000), math.ceil((full - now) / 1000) }
end
local reset = math.ceil((after - now) / 1000)
redis.call('SET', KEYS[1], string.format('%.0f', after), 'PX', reset)
return { 1, capacity, math.floor(room / interval), 0, reset }
