-- Replaces a value that has not changed since it was read.
--
-- KEYS   1: the value
-- ARGV   1: what it was; 2: what it shall be
-- Reply  1 if it was replaced
if redis.call('GET', KEYS[1]) ~= ARGV[1] then
  return 0
end
redis.call('SET', KEYS[1], ARGV[2])
return 1
