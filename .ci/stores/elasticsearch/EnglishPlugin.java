import java.util.Map;
import org.apache.lucene.analysis.Analyzer;
import org.apache.lucene.analysis.en.EnglishAnalyzer;
import org.elasticsearch.index.analysis.AnalyzerProvider;
import org.elasticsearch.index.analysis.AnalyzerScope;
import org.elasticsearch.index.analysis.PreBuiltAnalyzerProvider;
import org.elasticsearch.indices.analysis.AnalysisModule.AnalysisProvider;
import org.elasticsearch.plugins.AnalysisPlugin;
import org.elasticsearch.plugins.Plugin;

/**
 * The analyzer "english" for EsNode. A distribution has it in a module that is not published; the analyzer behind it is
 * Lucene's, whose jar comes with the server.
 */
public class EnglishPlugin extends Plugin implements AnalysisPlugin {
  @Override
  public Map<String, AnalysisProvider<AnalyzerProvider<? extends Analyzer>>> getAnalyzers() {
    return Map.of("english", (index, environment, name, settings) ->
        new PreBuiltAnalyzerProvider(name, AnalyzerScope.INDICES, new EnglishAnalyzer()));
  }
}
