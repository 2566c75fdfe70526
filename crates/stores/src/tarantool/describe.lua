-- Tells what the profile is made of.
local space, followers = box.space[...], 0
for _, replica in pairs(box.info.replication) do
    if replica.downstream and replica.downstream.status == 'follow' then
        followers = followers + 1
    end
end
-- A temporary space is in no log, whatever the mode.
return box.info.version, space.temporary and 'none' or box.cfg.wal_mode, space.engine, tostring(followers), tostring(box.cfg.memtx_memory)
