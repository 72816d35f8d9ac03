package server

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/local"
)

// metrics are the server's own registry, with vLLM's names.
type metrics struct {
	handler http.Handler
	prompt  *prometheus.CounterVec // without labels
	ended   *prometheus.CounterVec
	first   prometheus.Histogram
	whole   prometheus.Histogram
	fits    *prometheus.CounterVec
}

func newMetrics(engine *local.Engine, started time.Time) *metrics {
	registry := prometheus.NewRegistry()
	labels := prometheus.Labels{"engine": "0", "model_name": engine.Model()}
	counter := func(name, help string, of ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help, ConstLabels: labels}, of)
	}
	histogram := func(name, help string, from float64) prometheus.Histogram {
		return prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: name, Help: help, ConstLabels: labels, Buckets: prometheus.ExponentialBuckets(from, 2, 18),
		})
	}
	m := &metrics{
		handler: promhttp.HandlerFor(registry, promhttp.HandlerOpts{}),
		prompt:  counter("vllm:prompt_tokens_total", "Tokens of prompts whose answers have begun."),
		ended:   counter("vllm:request_success_total", "Completions that have ended.", "finished_reason"),
		first:   histogram("vllm:time_to_first_token_seconds", "Time to the first token.", 0.001),
		whole:   histogram("vllm:e2e_request_latency_seconds", "Time to the last token.", 0.01),
		fits: counter("ragpilot:context_answers_total", "Answers from compressed contexts, by whether the question seems to be of the task "+
			"that the context was made for.", "context", "task"),
	}
	m.prompt.WithLabelValues()
	for _, reason := range []string{"stop", "length", "abort"} {
		m.ended.WithLabelValues(reason)
	}
	for _, c := range engine.Contexts() {
		for _, task := range []string{sameTask, otherTask, unknownTask} {
			m.fits.WithLabelValues(c.Name, task)
		}
	}
	start := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "process_start_time_seconds", Help: "When the engine was opened, in seconds since 1970.",
	})
	start.Set(float64(started.UnixNano()) / 1e9)
	registry.MustRegister(m.prompt, m.ended, m.first, m.whole, m.fits, start, newReading(engine, labels))
	return m
}

// Values of the label task.
const (
	sameTask    = "same"
	otherTask   = "other"
	unknownTask = "unknown" // the answer is too short, or the context's file does not say
)

// observe counts a completion that has ended. from is the context that it was given from; empty: none.
func (m *metrics) observe(from string, r engines.Response, err error) {
	if from != "" && err == nil {
		task := unknownTask
		switch {
		case r.Context == nil:
		case r.Context.OtherTask:
			task = otherTask
		default:
			task = sameTask
		}
		m.fits.WithLabelValues(from, task).Inc()
	}
	if r.TTFT > 0 || err == nil {
		m.prompt.WithLabelValues().Add(float64(r.Usage.PromptTokens))
	}
	if r.TTFT > 0 { // an answer may be empty
		m.first.Observe(r.TTFT.Seconds())
	}
	switch {
	case err == nil:
		m.ended.WithLabelValues(r.Finish).Inc()
		m.whole.Observe(r.Total.Seconds())
	case errors.Is(err, context.Canceled), errors.Is(err, engines.ErrInterrupted):
		m.ended.WithLabelValues("abort").Inc()
	}
}

// reading collects what the engine counts itself.
type reading struct {
	engine *local.Engine
	labels prometheus.Labels
	info   prometheus.Metric
}

func newReading(engine *local.Engine, labels prometheus.Labels) *reading {
	info := prometheus.NewDesc("vllm:cache_config_info", "The cache's settings.", nil, prometheus.Labels{
		"engine": "0", "block_size": strconv.Itoa(local.BlockTokens), "num_gpu_blocks": strconv.Itoa(engine.Stats().Blocks),
		"enable_prefix_caching": "True",
	})
	return &reading{engine, labels, prometheus.MustNewConstMetric(info, prometheus.GaugeValue, 1)}
}

// Describe implements [prometheus.Collector].
func (r *reading) Describe(to chan<- *prometheus.Desc) { prometheus.DescribeByCollect(r, to) }

// Collect implements [prometheus.Collector].
func (r *reading) Collect(to chan<- prometheus.Metric) {
	const gauge, counter = prometheus.GaugeValue, prometheus.CounterValue
	s := r.engine.Stats()
	for _, v := range []struct {
		name, help string
		kind       prometheus.ValueType
		value      int64
	}{
		{"vllm:num_requests_running", "Requests that are computed.", gauge, int64(s.Running)},
		{"vllm:num_requests_waiting", "Requests that wait.", gauge, int64(s.Waiting)},
		{"vllm:prefix_cache_queries_total", "Prompt tokens looked up in the prefix cache.", counter, s.QueriedTokens},
		{"vllm:prefix_cache_hits_total", "Prompt tokens found in the prefix cache.", counter, s.HitTokens},
		{"vllm:prompt_tokens_cached_total", "Prompt tokens taken from a cache.", counter, s.HitTokens},
		{"vllm:generation_tokens_total", "Tokens generated.", counter, s.GeneratedTokens},
		{"vllm:num_preemptions_total", "Times that a request gave its memory back and was computed again.", counter, s.Preemptions},
		{"ragpilot:kv_loaded_blocks_total", "Blocks loaded from files.", counter, s.LoadedBlocks},
		{"ragpilot:kv_lost_blocks_total", "Blocks given up before they were in a file.", counter, s.LostBlocks},
		{"ragpilot:kv_file_blocks", "Blocks of this model in files.", gauge, int64(s.Disk.Blocks)},
		{"ragpilot:kv_file_bytes", "Size of the files of all models.", gauge, s.Disk.Bytes},
		{"ragpilot:kv_file_written_blocks_total", "Blocks written to files.", counter, s.Disk.Written},
		{"ragpilot:kv_file_evicted_blocks_total", "Files deleted for others.", counter, s.Disk.Evicted},
		{"ragpilot:kv_file_damaged_blocks_total", "Files that could not be used.", counter, s.Disk.Damaged},
		{"ragpilot:kv_file_errors_total", "Blocks that could not be written.", counter, s.Disk.Errors},
	} {
		to <- prometheus.MustNewConstMetric(prometheus.NewDesc(v.name, v.help, nil, r.labels), v.kind, float64(v.value))
	}
	used := prometheus.NewDesc("vllm:kv_cache_usage_perc", "Share of cache blocks that requests use now, 0 to 1.", nil, r.labels)
	to <- prometheus.MustNewConstMetric(used, gauge, float64(s.UsedBlocks)/float64(s.Blocks))
	to <- r.info
}
