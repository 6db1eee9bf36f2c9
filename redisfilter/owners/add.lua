-- Adds a key to one of an owner's windows, unless a window that is asked has it. Values are made when
-- they are needed, whole and with the time of their end, in the script that writes to them: so none
-- is ever without. A layer that is full brings forth the next.
--
-- KEYS  for each window that is asked, the key's shard in each layer that the caller knows of, layer 0 first
-- ARGV  the number of windows; the one to add to, from 1; the life of values that are made, in
--       milliseconds; the most layers; the layers in KEYS of each window; the tag of the first of them
--       of each window; then for each layer, as many
--       as the most in KEYS: the offset of the key's line in its shard, in bytes, the number of probes, the header of
--       a new shard, the number of bits with which a shard is full, marks among them, or 0 not to look, and the
--       offset of the line's last byte; then the positions of the bits in a line
-- Returns 0 if a window has more layers than were asked, 1 if the key is there, 2 if it was added, and
-- -i if KEYS[i] is no shard; after 0 and 2, the layers of each window.
local windows, current, life, most = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3], tonumber(ARGV[4])
local asked, widest = {}, 0
for w = 1, windows do
  asked[w] = tonumber(ARGV[4 + w])
  widest = math.max(widest, asked[w])
end
local shapes = 4 + 2 * windows
local positions = shapes + 5 * widest + 1

-- Redis gets numbers as text: what is not reckoned with stays text, which takes less time.
local function fieldOf(layer, field)
  return ARGV[shapes + 5 * (layer - 1) + field]
end
local function numberOf(layer, field)
  return tonumber(fieldOf(layer, field))
end

local first = string.sub(fieldOf(1, 3), 1, 8) -- of a header of layer 0
local found = {2}
local before, beforeCurrent = 0, 0 -- how many of KEYS belong to former windows
for w = 1, windows do
  local header = redis.pcall('GETRANGE', KEYS[before + 1], '0', '15')
  if type(header) == 'table' or header ~= '' and (#header < 16 or string.sub(header, 1, 8) ~= first
    or stray(string.sub(header, 13), ARGV[4 + windows + w])) then
    return {-(before + 1)}
  end
  found[w + 1] = layersOf(string.sub(header, 9, 12))
  if found[w + 1] > asked[w] then found[1] = 0 end
  for layer = 1, asked[w] do
    local line = redis.pcall('GETRANGE', KEYS[before + layer], fieldOf(layer, 1), fieldOf(layer, 5))
    if type(line) == 'table' then
      return {-(before + layer)}
    end
    if #line == 64 and holds(line, positions, numberOf(layer, 2)) then
      return {1}
    end
    if line ~= '' and (#line < 64 or not has(line, 511)) or layer == 1 and line == '' and header ~= '' then
      return {-(before + layer)}
    end
  end
  if w == current then beforeCurrent = before end
  before = before + asked[w]
end
if found[1] == 0 then
  return found
end

local layer = found[current + 1]
local shard = KEYS[beforeCurrent + layer]
local header = fieldOf(layer, 3)
local lines = string.byte(header, 7) + 256 * string.byte(header, 8)
local length = redis.call('STRLEN', shard)
if length == 0 then
  local line = string.rep('\0', 63) .. '\128'
  redis.call('SET', shard, header .. string.rep(line, lines), 'PX', life)
elseif length ~= 16 + 64 * lines then
  return {-(beforeCurrent + layer)}
elseif redis.call('PTTL', shard) == -1 then -- somebody took it away
  redis.call('PEXPIRE', shard, life)
end
set(shard, numberOf(layer, 1), positions, numberOf(layer, 2))

local full = numberOf(layer, 4)
if full > 0 and layer < most and redis.call('BITCOUNT', shard, 16, -1) >= full then
  redis.call('SETBIT', KEYS[beforeCurrent + 1], offset(64 + layer - 1), 1)
  found[current + 1] = layer + 1
end
return found
