-- What scripts share. A line is 64 bytes of a shard, whose positions count from each byte's lowest
-- bit; the offsets of Redis count from its highest.

local function has(line, p)
  local low = p % 8
  return math.floor(string.byte(line, (p - low) / 8 + 1) / 2 ^ low) % 2 == 1
end

local function offset(p)
  local low = p % 8
  return p - low + 7 - low
end

-- holds reports whether a line has the bits of a key: at most probes positions, from ARGV[first] on.
local function holds(line, first, probes)
  for i = first, first + probes - 1 do
    if not has(line, tonumber(ARGV[i])) then return false end
  end
  return true
end

-- set sets those bits in the line that begins at a byte of a shard.
local function set(shard, at, first, probes)
  local fields = {}
  for i = first, first + probes - 1 do
    local n = #fields
    fields[n + 1], fields[n + 2] = 'SET', 'u1'
    fields[n + 3], fields[n + 4] = 8 * at + offset(tonumber(ARGV[i])), 1
  end
  redis.call('BITFIELD', shard, unpack(fields))
end

-- stray reports whether a shard with the last four bytes of a header is that of a key with another tag.
local function stray(found, tag)
  return #found == 4 and found ~= '\0\0\0\0' and found ~= tag
end

-- layersOf returns the layers of a chain that bytes 8 to 11 of its first shard tell of.
local function layersOf(mask)
  local n = 1
  for i = 0, 8 * #mask - 1 do
    if not has(mask, i) then break end
    n = n + 1
  end
  return n
end

