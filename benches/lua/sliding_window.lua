-- A sliding window counter: two counts in a hash. KEYS[1]; ARGV: limit, window in milliseconds, cost.
-- Replies allowed, limit, remaining, retry after (until the window's end) and reset in milliseconds.
local limit, window, cost = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local number, passed = math.floor(now / window), now % window
local state = redis.call('HMGET', KEYS[1], 'window', 'current', 'previous')
local kept, current, previous = tonumber(state[1]), tonumber(state[2]) or 0, tonumber(state[3]) or 0
if kept ~= number then
  previous = kept == number - 1 and current or 0
  current = 0
end
local used = current + math.ceil(previous * (window - passed) / window)
if used + cost > limit then
  return { 0, limit, math.max(0, limit - used), window - passed, 2 * window - passed }
end
redis.call('HSET', KEYS[1], 'window', number, 'current', current + cost, 'previous', previous)
redis.call('PEXPIRE', KEYS[1], 2 * window - passed)
return { 1, limit, limit - used - cost, 0, 2 * window - passed }
