-- Tells whether the server takes no writes, and number and engine of the space, which is made if the
-- server may.
local name, engine, make = ...
local space = box.space[name]
if make == 'make' and not box.info.ro and (space == nil or space.index[0] == nil) then
    space = box.schema.space.create(name, {engine = engine, if_not_exists = true})
    space:create_index('primary', {parts = {1, 'string'}, if_not_exists = true})
end
return tostring(box.info.ro), tostring(space and space.index[0] and space.id or 0), space and space.engine or ''
