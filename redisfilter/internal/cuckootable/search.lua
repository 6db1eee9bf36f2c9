-- Adding to a shard. The search is that of Table.makeRoom; its bound is maxSteps.

-- shift moves one fingerprint along each step of the way to the last one, and returns the bucket
-- that the way began with, in which a slot is then free.
local function shift(bucket, before, moved, at)
  while before[at] do
    local source = bucket[before[at]]
    replace(bucket[at], 0, moved[at])
    replace(source, moved[at], 0)
    at = before[at]
  end
  return bucket[at]
end

-- other_of returns the second bucket of a fingerprint whose first is given, and the first if the
-- second is given. Numbers are doubles; none of these exceeds 2^53.
local function other_of(fingerprint, bucket)
  local low = fingerprint % 65536
  local x = (low * 2654435761 + (fingerprint - low) / 65536 * 2246822507) % 4294967296 * buckets
  local sum = (x - x % 4294967296) / 4294967296
  return (sum - sum % 2 + 1 - bucket) % buckets
end

-- make_room returns a bucket of i and j, both full, in which it freed a slot by moving fingerprints
-- to their other buckets along the shortest chain there is; nil if it finds none, and then nothing
-- has moved. It comes to no bucket twice.
local function make_room(i, j)
  local bucket, before, moved, n, at = {i, j}, {}, {}, 2, 1
  local been = {[i] = true, [j] = true}
  while at <= n do
    for _, fingerprint in ipairs(slots(bucket[at])) do
      local other = other_of(fingerprint, bucket[at])
      if not been[other] then
        been[other] = true
        n = n + 1
        bucket[n], before[n], moved[n] = other, at, fingerprint
        if find(other, 0) then
          return shift(bucket, before, moved, n)
        end
        if n == 256 then
          return nil
        end
      end
    end
    at = at + 1
  end
end

local function holds_only(bucket, fingerprint)
  for _, slot in ipairs(slots(bucket)) do
    if slot ~= fingerprint then
      return false
    end
  end
  return true
end

-- A search that failed takes long. The other keys of the call are not worth one each.
local search_failed = false

-- add answers '+', or 'f' if the shard is full, or 'c' if all slots of both buckets hold the key.
local function add(fingerprint, i, j)
  if replace(i, 0, fingerprint) or replace(j, 0, fingerprint) then
    return '+'
  end
  if holds_only(i, fingerprint) and holds_only(j, fingerprint) then
    return 'c'
  end
  local bucket = not search_failed and make_room(i, j)
  if not bucket then
    search_failed = true
    return 'f'
  end
  replace(bucket, 0, fingerprint)
  return '+'
end
