-- Adds a key to the last layer of a chain unless a layer has it.
--
-- KEYS  the key's shard in each layer, layer 0 first
-- ARGV  for each layer the offset of the key's line in its shard, in bytes, and the number of
--       probes; then the positions of the bits in a line, as many as the most probes; then the tag
--       of KEYS[1], and the most layers that a chain has
-- Returns the layers that the chain has and, if they are as many as were asked, what was found:
-- 1 for a fresh key, plus 2 if every line was whole. It returns -1 first if KEYS[1] is another's shard.
local layers = #KEYS
local header = redis.call('GETRANGE', KEYS[1], 8, 15)
if stray(string.sub(header, 5), ARGV[#ARGV - 1]) then
  return {-1, 0}
end
local there = math.min(layersOf(string.sub(header, 1, 4)), tonumber(ARGV[#ARGV]))
if there ~= layers then
  return {there, 0}
end

local positions = 2 * layers + 1
local whole = true
for layer = 1, layers do
  local at, probes = tonumber(ARGV[2 * layer - 1]), tonumber(ARGV[2 * layer])
  local line = redis.call('GETRANGE', KEYS[layer], at, at + 63)
  whole = whole and #line == 64 and has(line, 511)
  if #line == 64 and holds(line, positions, probes) then
    return {there, 2}
  end
end

set(KEYS[layers], tonumber(ARGV[2 * layers - 1]), positions, tonumber(ARGV[2 * layers]))
return {there, whole and 3 or 1}
