-- '-': the key, or another one of its class, is there.
local function change(fingerprint, i, j)
  if find(i, fingerprint) or find(j, fingerprint) then
    return '-'
  end
  return add(fingerprint, i, j)
end

local always_remember = false
