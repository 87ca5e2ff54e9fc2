-- A sliding window log in a sorted set. KEYS[1]; ARGV: limit, window in milliseconds, a name for the call that no other has.
-- Replies allowed, limit, remaining, retry after and reset in milliseconds.
local limit, window = tonumber(ARGV[1]), tonumber(ARGV[2])
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - window)
local used = redis.call('ZCARD', KEYS[1])
if used >= limit then
  local oldest = redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')
  return { 0, limit, 0, oldest[2] + window - now, window }
end
redis.call('ZADD', KEYS[1], now, ARGV[3])
redis.call('PEXPIRE', KEYS[1], window)
return { 1, limit, limit - used - 1, 0, window }
