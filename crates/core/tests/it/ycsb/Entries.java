// Reads texts by java.util.Properties, case by case. A case on standard input is a line of hexadecimal digits, its
// bytes; the answer is `refused`, or the entries in hexadecimal digits of UTF-8, `key=value` each, sorted.

import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Properties;
import java.util.TreeSet;

public final class Entries {
  private static byte[] bytes(String digits) {
    byte[] bytes = new byte[digits.length() / 2];
    for (int i = 0; i < bytes.length; i++) {
      bytes[i] = (byte) Integer.parseInt(digits.substring(2 * i, 2 * i + 2), 16);
    }
    return bytes;
  }

  private static String digits(String text) {
    StringBuilder digits = new StringBuilder();
    // Halves of characters that stand alone become U+FFFD.
    String whole = text.codePoints().map(c -> c >= 0xd800 && c < 0xe000 ? 0xfffd : c)
        .collect(StringBuilder::new, StringBuilder::appendCodePoint, StringBuilder::append).toString();
    for (byte b : whole.getBytes(StandardCharsets.UTF_8)) {
      digits.append(String.format("%02x", b));
    }
    return digits.toString();
  }

  public static void main(String[] arguments) throws Exception {
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
    PrintStream out = new PrintStream(System.out, false);
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      Properties properties = new Properties();
      try {
        properties.load(new ByteArrayInputStream(bytes(line)));
      } catch (IllegalArgumentException malformed) {
        out.println("refused");
        continue;
      }
      TreeSet<String> entries = new TreeSet<>();
      properties.forEach((key, value) -> entries.add(digits((String) key) + "=" + digits((String) value)));
      out.println(String.join(" ", entries));
    }
    out.flush();
  }
}
