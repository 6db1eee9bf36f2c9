
answers = ''
for at = 7, #ARGV, 3 do
  answers = answers .. change(tonumber(ARGV[at]), tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2]))
end
if always_remember or #writes > 0 then
  redis.call('SET', memory, answers, 'PX', ARGV[6])
end
if #writes > 0 then
  local reply = redis.pcall('BITFIELD', shard, unpack(writes))
  if reply.err then -- nothing was written, and nothing must be remembered
    redis.pcall('DEL', memory)
    return reply
  end
end
return answers
