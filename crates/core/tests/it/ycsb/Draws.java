// Runs YCSB's own CoreWorkload against a store that only counts what it is asked for, case by case. A case on
// standard input is a line with the number of operations, the lines of a workload file, and a line `end`; its
// keys must be ordered. The answer is four lines of counts that begin with 0: of reads by record, of reads by the
// record's age, of scans by their length, of fields by their length.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.io.StringReader;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.Vector;
import site.ycsb.ByteIterator;
import site.ycsb.DB;
import site.ycsb.Status;
import site.ycsb.measurements.Measurements;
import site.ycsb.workloads.CoreWorkload;

public final class Draws extends DB {
  private final long[][] counts = {new long[16], new long[16], new long[16], new long[16]};
  private long newest;

  private Draws(long newest) {
    this.newest = newest;
  }

  private void count(int which, long at) {
    if (at >= counts[which].length) {
      counts[which] = Arrays.copyOf(counts[which], (int) Math.max(at + 1, 2L * counts[which].length));
    }
    counts[which][(int) at]++;
  }

  private void chosen(String key) {
    long record = Long.parseLong(key.substring("user".length()));
    count(0, record);
    count(1, newest - record);
  }

  @Override
  public Status read(String table, String key, Set<String> fields, Map<String, ByteIterator> result) {
    chosen(key);
    return Status.OK;
  }

  @Override
  public Status scan(String table, String key, int length, Set<String> fields,
                     Vector<HashMap<String, ByteIterator>> result) {
    chosen(key);
    count(2, length);
    return Status.OK;
  }

  @Override
  public Status update(String table, String key, Map<String, ByteIterator> values) {
    chosen(key);
    return Status.OK;
  }

  @Override
  public Status insert(String table, String key, Map<String, ByteIterator> values) {
    newest++;
    values.values().forEach(value -> count(3, value.bytesLeft()));
    return Status.OK;
  }

  @Override
  public Status delete(String table, String key) {
    return Status.OK;
  }

  public static void main(String[] arguments) throws Exception {
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
    PrintStream out = new PrintStream(System.out, false);
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      long operations = Long.parseLong(line);
      StringBuilder text = new StringBuilder();
      for (line = in.readLine(); !line.equals("end"); line = in.readLine()) {
        text.append(line).append('\n');
      }
      Properties properties = new Properties();
      properties.load(new StringReader(text.toString()));
      Measurements.setProperties(properties);
      CoreWorkload workload = new CoreWorkload();
      workload.init(properties);
      Draws draws = new Draws(Long.parseLong(properties.getProperty("recordcount")) - 1);
      for (long i = 0; i < operations; i++) {
        workload.doTransaction(draws, null);
      }
      for (long[] counts : draws.counts) {
        StringBuilder answer = new StringBuilder();
        Arrays.stream(counts).forEach(count -> answer.append(count).append(' '));
        out.println(answer);
      }
    }
    out.flush();
  }
}
