import java.lang.reflect.Method;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Map;
import java.util.Set;
import org.elasticsearch.common.logging.LogConfigurator;
import org.elasticsearch.common.settings.Settings;
import org.elasticsearch.env.Environment;
import org.elasticsearch.node.InternalSettingsPreparer;
import org.elasticsearch.node.Node;
import org.elasticsearch.plugins.PluginsLoader;

/**
 * One Elasticsearch node inside this JVM, made of the jars published on Maven Central. Arguments: its folder, a folder for
 * data, and the port.
 * The published jars hold the server and the HTTP transport, not the distribution around them, so:
 * no GET / (its module is not published), of the language analyzers only English (EnglishPlugin), no security, no native
 * SIMD code.
 * BM25 search, bulk, kNN and hybrid search are the server's own and work.
 */
public class EsNode {
  public static void main(String[] args) throws Exception {
    Path home = Path.of(args[0]).toAbsolutePath();
    Settings settings = Settings.builder()
        .put("path.home", home.toString())
        .put("path.data", Path.of(args[1]).toAbsolutePath().toString())
        .put("cluster.name", "ragpilot-test")
        .put("node.name", "n1")
        .put("discovery.type", "single-node")
        .put("http.host", "127.0.0.1")
        .put("http.port", args[2])
        .put("transport.host", "127.0.0.1")
        .put("transport.port", "0")
        .put("cluster.routing.allocation.disk.threshold_enabled", false)
        .build();
    LogConfigurator.setNodeName("n1");
    Environment env =
        InternalSettingsPreparer.prepareEnvironment(settings, Map.of(), home.resolve("config"), () -> "n1");
    LogConfigurator.configure(env, true);
    Object bundles = call("loadModulesBundles", modulesDir(env), false);
    Node node = new Node(env, (PluginsLoader) call("createPluginsLoader", bundles, Set.of(), Map.of(), false));
    node.start();
    Runtime.getRuntime().addShutdownHook(new Thread(() -> {
      try {
        node.close();
      } catch (Exception e) {
        System.err.println(e);
      }
    }));
    Thread.currentThread().join();
  }

  /** Calls the loader's static method of that name with as many of the arguments as this version takes. */
  private static Object call(String name, Object... args) throws Exception {
    Method best = null;
    for (Method m : PluginsLoader.class.getMethods()) {
      if (m.getName().equals(name) && (best == null || m.getParameterCount() > best.getParameterCount())) {
        best = m;
      }
    }
    return best.invoke(null, Arrays.copyOf(args, best.getParameterCount()));
  }

  private static Path modulesDir(Environment env) throws Exception {
    for (String name : new String[] {"modulesDir", "modulesFile"}) {
      try {
        return (Path) Environment.class.getMethod(name).invoke(env);
      } catch (NoSuchMethodException e) {
        continue;
      }
    }
    throw new IllegalStateException("no modules folder");
  }
}
