-- Tells what the profile is made of.
local space, followers = box.space[...], 0
for _, replica in pairs(box.info.replication) do
    if replica.downstream and replica.downstream.status == 'follow' then
        followers = followers + 1
    end
end
return box.info.version, box.cfg.wal_mode, space.engine, tostring(followers), tostring(box.cfg.memtx_memory)
