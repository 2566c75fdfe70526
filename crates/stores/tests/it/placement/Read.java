// Reads keys through Jedis' ShardedJedis, and prints how many it found.
// Usage: Read PREFIX KEYS HOST:PORT:WEIGHT...
import java.util.ArrayList;
import java.util.List;
import redis.clients.jedis.JedisShardInfo;
import redis.clients.jedis.ShardedJedis;

public class Read {
    public static void main(String[] words) {
        List<JedisShardInfo> servers = new ArrayList<>();
        for (int at = 2; at < words.length; at++) {
            String[] parts = words[at].split(":");
            int timeout = 2000;
            servers.add(new JedisShardInfo(parts[0], Integer.parseInt(parts[1]), timeout, timeout, Integer.parseInt(parts[2])));
        }
        int found = 0;
        try (ShardedJedis jedis = new ShardedJedis(servers)) {
            for (int n = 0; n < Integer.parseInt(words[1]); n++) {
                if (jedis.get(words[0] + n) != null) found++;
            }
        }
        System.out.println(found);
    }
}
