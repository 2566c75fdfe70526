// YCSB's own binding for Redis is in no registry; this one does the same with the same client library: a
// record is a hash, written with HMSET and read with HGETALL or HMGET, and each thread has one connection.
// It leaves out what scans would need, a sorted set of all keys, and it tells the processor time of the
// load apart from that of the virtual machine's start.

package kvdyno;

import com.sun.management.OperatingSystemMXBean;
import java.lang.management.ManagementFactory;
import java.util.HashMap;
import java.util.Iterator;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.Vector;
import redis.clients.jedis.Jedis;
import site.ycsb.ByteIterator;
import site.ycsb.DB;
import site.ycsb.Status;
import site.ycsb.StringByteIterator;

/** Records of YCSB as hashes of Redis. */
public class YcsbRedis extends DB {
    private static final OperatingSystemMXBean SYSTEM =
        (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
    /** Of all threads, when the first of the connections was made; ns. */
    private static final long BEGAN = SYSTEM.getProcessCpuTime();

    private Jedis redis;

    @Override
    public void init() {
        Properties given = getProperties();
        int port = Integer.parseInt(given.getProperty("redis.port"));
        redis = new Jedis(given.getProperty("redis.host"), port);
        redis.connect();
    }

    /** Whoever is the last to end tells the most, and that is the load's. */
    @Override
    public void cleanup() {
        redis.close();
        System.out.println("[LOAD], CPU(us), " + (SYSTEM.getProcessCpuTime() - BEGAN) / 1000);
    }

    @Override
    public Status read(String table, String key, Set<String> fields, Map<String, ByteIterator> record) {
        if (fields == null) {
            StringByteIterator.putAllAsByteIterators(record, redis.hgetAll(key));
        } else {
            Iterator<String> values = redis.hmget(key, fields.toArray(new String[0])).iterator();
            for (String field : fields) {
                String value = values.next();
                if (value != null) {
                    record.put(field, new StringByteIterator(value));
                }
            }
        }
        return record.isEmpty() ? Status.NOT_FOUND : Status.OK;
    }

    @Override
    public Status insert(String table, String key, Map<String, ByteIterator> record) {
        return update(table, key, record);
    }

    @Override
    public Status update(String table, String key, Map<String, ByteIterator> changed) {
        String answer = redis.hmset(key, StringByteIterator.getStringMap(changed));
        return answer.equals("OK") ? Status.OK : Status.ERROR;
    }

    @Override
    public Status delete(String table, String key) {
        return redis.del(key) == 1 ? Status.OK : Status.NOT_FOUND;
    }

    @Override
    public Status scan(String table, String from, int records, Set<String> fields,
            Vector<HashMap<String, ByteIterator>> found) {
        return Status.NOT_IMPLEMENTED;
    }
}
