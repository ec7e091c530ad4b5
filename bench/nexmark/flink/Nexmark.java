// Runs one query of Nexmark in Flink's SQL inside this JVM, over columns in memory that repeat without end.
//
//   java -cp JARS:CLASSES Nexmark QUERY FOLDER WARM_UP MEASURED [bounded]
//
// Columns come as raw files of FOLDER (columns.py): a cycle of events whose ids and times go on with each lap. The query's
// rows go to a blackhole. After WARM_UP seconds it measures MEASURED seconds: rows read, CPU time of the process. With
// `bounded` it runs one cycle to its end and counts the rows of the result.
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.LongAdder;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.connector.source.util.ratelimit.RateLimiterStrategy;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.connector.datagen.source.DataGeneratorSource;
import org.apache.flink.connector.datagen.source.GeneratorFunction;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.table.api.Schema;
import org.apache.flink.table.api.TableResult;
import org.apache.flink.table.api.bridge.java.StreamTableEnvironment;
import org.apache.flink.table.data.GenericRowData;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.data.StringData;
import org.apache.flink.table.data.TimestampData;
import org.apache.flink.table.data.binary.BinaryStringData;
import org.apache.flink.table.runtime.typeutils.InternalTypeInfo;
import org.apache.flink.table.types.logical.BigIntType;
import org.apache.flink.table.types.logical.LogicalType;
import org.apache.flink.table.types.logical.RowType;
import org.apache.flink.table.types.logical.TimestampType;
import org.apache.flink.table.types.logical.VarCharType;

public final class Nexmark {
  static final LongAdder READ = new LongAdder(); // rows that sources have emitted

  // {table: columns}; i: a number, +: an id that goes on with each lap, t: a time, s: a text
  static final Map<String, String[]> TABLES = Map.of(
      "people", new String[] {"id+", "name:s", "city:s", "state:s", "date_time:t", "extra:s"},
      "auctions", new String[] {"id+", "item_name:s", "initial_bid:i", "date_time:t", "expires:t", "seller+", "category:i", "extra:s"},
      "bids", new String[] {"auction+", "bidder+", "price:i", "channel:s", "url:s", "date_time:t", "extra:s"});

  static final Map<String, String> SQL = new HashMap<>();

  static {
    SQL.put("q0", "SELECT auction, bidder, price, date_time, extra FROM bids");
    SQL.put("q1", "SELECT auction, bidder, 0.908 * CAST(price AS DOUBLE) AS price, date_time, extra FROM bids");
    SQL.put("q2", "SELECT auction, price FROM bids WHERE MOD(auction, 123) = 0");
    SQL.put("q3", "SELECT p.name, p.city, p.state, a.id FROM auctions a JOIN people p ON a.seller = p.id"
        + " WHERE a.category = 10 AND p.state IN ('OR', 'ID', 'CA')");
    SQL.put("q4", "SELECT category, AVG(final) AS price FROM (SELECT MAX(b.price) AS final, a.category FROM auctions a, bids b"
        + " WHERE a.id = b.auction AND b.date_time BETWEEN a.date_time AND a.expires GROUP BY a.id, a.category) GROUP BY category");
    SQL.put("q5", "SELECT auction, num FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY num DESC) AS place"
        + " FROM (SELECT auction, window_start, window_end, COUNT(*) AS num FROM TABLE(HOP(TABLE bids, DESCRIPTOR(date_time),"
        + " INTERVAL '2' SECOND, INTERVAL '10' SECOND)) GROUP BY auction, window_start, window_end)) WHERE place <= 1");
    SQL.put("q7", "SELECT auction, bidder, price FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end"
        + " ORDER BY price DESC) AS place FROM TABLE(TUMBLE(TABLE bids, DESCRIPTOR(date_time), INTERVAL '10' SECOND))) WHERE place <= 1");
    SQL.put("q8", "SELECT p.id, p.name, p.window_start FROM (SELECT id, name, window_start, window_end FROM TABLE(TUMBLE(TABLE people,"
        + " DESCRIPTOR(date_time), INTERVAL '10' SECOND)) GROUP BY id, name, window_start, window_end) p JOIN (SELECT seller, window_start,"
        + " window_end FROM TABLE(TUMBLE(TABLE auctions, DESCRIPTOR(date_time), INTERVAL '10' SECOND)) GROUP BY seller, window_start,"
        + " window_end) a ON p.id = a.seller AND p.window_start = a.window_start AND p.window_end = a.window_end");
    SQL.put("q11", "SELECT bidder, COUNT(*) AS bids, window_start, window_end FROM TABLE(SESSION(TABLE bids PARTITION BY bidder,"
        + " DESCRIPTOR(date_time), INTERVAL '10' SECOND)) GROUP BY bidder, window_start, window_end");
  }

  public static void main(String[] arguments) throws Exception {
    String query = arguments[0];
    Path folder = Path.of(arguments[1]);
    boolean bounded = arguments.length > 4;
    Configuration settings = new Configuration();
    settings.setString("taskmanager.numberOfTaskSlots", "1");
    settings.setString("pipeline.object-reuse", "true");
    settings.setString("state.backend.type", "hashmap");
    settings.setString("table.exec.mini-batch.enabled", "true");
    settings.setString("table.exec.mini-batch.allow-latency", "2s");
    settings.setString("table.exec.mini-batch.size", "50000");
    settings.setString("table.local-time-zone", "UTC");
    settings.setString("taskmanager.memory.network.max", "256m");
    StreamExecutionEnvironment environment = StreamExecutionEnvironment.createLocalEnvironment(1, settings);
    StreamTableEnvironment tables = StreamTableEnvironment.create(environment);
    for (Map.Entry<String, String[]> table : TABLES.entrySet()) {
      if (!SQL.get(query).matches("(?s).*\\b" + table.getKey() + "\\b.*")) continue;
      declare(environment, tables, table.getKey(), table.getValue(), folder, bounded);
    }
    if (bounded) {
      TableResult result = tables.executeSql(SQL.get(query));
      long rows = 0;
      try (var found = result.collect()) {
        for (; found.hasNext(); found.next()) ++rows;
      }
      System.out.println("{\"rows\": " + rows + "}");
      System.exit(0);
    }
    var planned = tables.sqlQuery(SQL.get(query));
    tables.createTemporaryTable("out", org.apache.flink.table.api.TableDescriptor.forConnector("blackhole")
        .schema(Schema.newBuilder().fromResolvedSchema(planned.getResolvedSchema()).build()).build());
    planned.executeInsert("out");
    var system = (com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
    while (READ.sum() == 0) Thread.sleep(50);
    Thread.sleep(1000 * Long.parseLong(arguments[2]));
    long rows = READ.sum(), cpu = system.getProcessCpuTime(), wall = System.nanoTime();
    Thread.sleep(1000 * Long.parseLong(arguments[3]));
    rows = READ.sum() - rows;
    cpu = system.getProcessCpuTime() - cpu;
    wall = System.nanoTime() - wall;
    System.out.println("{\"read\": " + rows + ", \"seconds\": " + wall / 1e9 + ", \"cpu_seconds\": " + cpu / 1e9 + "}");
    System.out.flush();
    Runtime.getRuntime().halt(0); // the job has no end
  }

  static void declare(StreamExecutionEnvironment environment, StreamTableEnvironment tables, String name, String[] columns, Path folder,
      boolean bounded) throws IOException {
    Rows rows = new Rows(name, columns, folder);
    String[] names = new String[columns.length];
    LogicalType[] types = new LogicalType[columns.length];
    for (int i = 0; i < columns.length; ++i) {
      names[i] = columns[i].replaceAll("[+:].*", "");
      types[i] = columns[i].endsWith(":t") ? new TimestampType(3) : columns[i].endsWith(":s") ? VarCharType.STRING_TYPE : new BigIntType();
    }
    InternalTypeInfo<RowData> type = InternalTypeInfo.of(RowType.of(types, names));
    var source = new DataGeneratorSource<RowData>(rows, bounded ? Rows.load(name, columns, folder).rows : Long.MAX_VALUE,
        RateLimiterStrategy.noOp(), type);
    int time = List.of(names).indexOf("date_time");
    WatermarkStrategy<RowData> watermarks = WatermarkStrategy.<RowData>forMonotonousTimestamps()
        .withTimestampAssigner((row, before) -> row.getTimestamp(time, 3).getMillisecond())
        .withWatermarkAlignment("events", Duration.ofSeconds(10), Duration.ofMillis(100));
    DataStream<RowData> stream = environment.fromSource(source, watermarks, name);
    tables.createTemporaryView(name, stream, Schema.newBuilder().watermark("date_time", "SOURCE_WATERMARK()").build());
  }

  // Row n of a table: that of the cycle, with ids and times of its lap.
  static final class Rows implements GeneratorFunction<Long, RowData> {
    private static final long serialVersionUID = 1;
    private static final Map<String, Columns> LOADED = new HashMap<>(); // one JVM: tasks share them
    private final String name;
    private final String folder;
    private final String[] columns;
    private transient Columns loaded;

    Rows(String name, String[] columns, Path folder) {
      this.name = name;
      this.columns = columns;
      this.folder = folder.toString();
    }

    static synchronized Columns load(String name, String[] columns, Path folder) throws IOException {
      Columns found = LOADED.get(name);
      if (found == null) LOADED.put(name, found = new Columns(name, columns, folder));
      return found;
    }

    @Override
    public RowData map(Long number) throws Exception {
      if (loaded == null) loaded = load(name, columns, Path.of(folder));
      READ.increment();
      return loaded.row(number);
    }
  }

  static final class Columns {
    final int rows;
    private final char[] kinds;
    private final long[][] numbers;
    private final int[][] offsets;
    private final byte[][] texts;
    private final long[] steps; // what a lap adds
    private final StringData empty = StringData.fromString("");

    Columns(String name, String[] columns, Path folder) throws IOException {
      int n = columns.length;
      kinds = new char[n];
      numbers = new long[n][];
      offsets = new int[n][];
      texts = new byte[n][];
      steps = new long[n];
      Map<String, Long> known = new HashMap<>();
      for (String line : Files.readAllLines(folder.resolve("laps"))) known.put(line.split(" ")[0], Long.parseLong(line.split(" ")[1]));
      int found = 0;
      for (int i = 0; i < n; ++i) {
        String column = columns[i].replaceAll("[+:].*", "");
        kinds[i] = columns[i].charAt(columns[i].length() - 1);
        Path file = folder.resolve(name + "." + column);
        if (kinds[i] == 's') {
          ByteBuffer places = read(folder.resolve(name + "." + column + ".offsets"));
          offsets[i] = new int[places.remaining() / 4];
          places.asIntBuffer().get(offsets[i]);
          texts[i] = new byte[(int) Files.size(file)];
          read(file).get(texts[i]);
          found = offsets[i].length - 1;
        } else {
          ByteBuffer values = read(file);
          numbers[i] = new long[values.remaining() / 8];
          values.asLongBuffer().get(numbers[i]);
          found = numbers[i].length;
          if (kinds[i] == '+') steps[i] = known.get(name + "." + column);
          if (kinds[i] == 't') steps[i] = known.get("date_time");
        }
      }
      rows = found;
    }

    private static ByteBuffer read(Path file) throws IOException {
      try (FileChannel channel = FileChannel.open(file, StandardOpenOption.READ)) {
        return channel.map(FileChannel.MapMode.READ_ONLY, 0, channel.size()).order(ByteOrder.LITTLE_ENDIAN);
      }
    }

    RowData row(long number) {
      long lap = number / rows;
      int at = (int) (number % rows);
      GenericRowData made = new GenericRowData(kinds.length);
      for (int i = 0; i < kinds.length; ++i) {
        if (kinds[i] == 's') {
          int start = offsets[i][at], bytes = offsets[i][at + 1] - start;
          made.setField(i, bytes == 0 ? empty : BinaryStringData.fromBytes(texts[i], start, bytes));
        } else {
          long value = numbers[i][at] + lap * steps[i];
          made.setField(i, kinds[i] == 't' ? (Object) TimestampData.fromEpochMillis(value) : (Object) value);
        }
      }
      return made;
    }
  }

  private Nexmark() {}
}
