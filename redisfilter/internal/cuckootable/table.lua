-- One shard of a cuckoo filter: what the scripts begin with. finish.lua ends them. The package's
-- documentation describes the shard's bits.
--
-- KEYS   1: the shard; 2: where the answers to this call are remembered
-- ARGV   1: bits of a fingerprint; 2: buckets; 3: the mark; 4 and 5: its first and last byte;
--        6: milliseconds to remember answers; then fingerprint, bucket and other bucket of each key
-- Reply  one character for each key, or "lost"
--
-- Slots are read and changed in memory, and written by one command when all keys have their answers.

local shard, memory = KEYS[1], KEYS[2]

local answers = redis.call('GET', memory)
if answers then
  return answers
end
local mark = redis.pcall('GETRANGE', shard, ARGV[4], ARGV[5])
if mark ~= ARGV[3] then
  return type(mark) == 'table' and mark or 'lost' -- the server's own error, of a value of another type
end

local bits, buckets, fingerprint_type = tonumber(ARGV[1]), tonumber(ARGV[2]), 'u' .. ARGV[1]
local buckets_read = {}
local writes = {}

local function first_bit(bucket)
  return 128 + bucket * 4 * bits
end

-- slots returns what the four slots of a bucket hold.
local function slots(bucket)
  local held = buckets_read[bucket]
  if not held then
    local at = first_bit(bucket)
    held = redis.call('BITFIELD_RO', shard, 'GET', fingerprint_type, at, 'GET', fingerprint_type, at + bits,
      'GET', fingerprint_type, at + 2 * bits, 'GET', fingerprint_type, at + 3 * bits)
    buckets_read[bucket] = held
  end
  return held
end

-- find returns the first slot of a bucket that holds a value, nil if none does.
local function find(bucket, value)
  local held = slots(bucket)
  return held[1] == value and 1 or held[2] == value and 2 or held[3] == value and 3 or held[4] == value and 4 or nil
end

-- replace changes one slot of a bucket that holds old, or returns false.
local function replace(bucket, old, new)
  local slot = find(bucket, old)
  if not slot then
    return false
  end
  slots(bucket)[slot] = new
  local n = #writes
  writes[n + 1], writes[n + 2], writes[n + 3], writes[n + 4] =
    'SET', fingerprint_type, first_bit(bucket) + (slot - 1) * bits, new
  return true
end
