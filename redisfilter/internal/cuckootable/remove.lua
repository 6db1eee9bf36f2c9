-- '-': no key of the class is there. This is remembered as well, lest a late copy of the call takes
-- away what was added in the meantime.
local function change(fingerprint, i, j)
  if replace(i, fingerprint, 0) or replace(j, fingerprint, 0) then
    return '+'
  end
  return '-'
end

local always_remember = true
