package selfhosted_test

// What servers answer, shortened.

const vllmSchema = `{"paths":{"/health":{},"/reset_prefix_cache":{}},"components":{"schemas":{"ChatCompletionRequest":{"properties":{
"session_id":{},"cache_salt":{},"return_token_ids":{},"priority":{},"request_id":{}}}}}}`

const vllmSources = `{"0":{"enable_kv_cache_events":true,"publisher":"zmq","endpoint":"tcp://*:5557","replay_endpoint":"tcp://*:5558",
"buffer_steps":10000,"hwm":100000,"max_queue_size":100000,"topic":"kv@pod@tiny"}}`

const vllmMetrics = `# TYPE process_start_time_seconds gauge
process_start_time_seconds 1.79529285444e+09
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="tiny"} 2.0
vllm:num_requests_running{engine="1",model_name="tiny"} 1.0
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{engine="0",model_name="tiny"} 4.0
# TYPE vllm:kv_cache_usage_perc gauge
vllm:kv_cache_usage_perc{engine="0",model_name="tiny"} 0.25
vllm:kv_cache_usage_perc{engine="1",model_name="tiny"} 0.5
# TYPE vllm:prefix_cache_queries_total counter
vllm:prefix_cache_queries_total{engine="0",model_name="tiny"} 640.0
vllm:prefix_cache_queries_total{engine="1",model_name="tiny"} 360.0
# TYPE vllm:prefix_cache_queries_created gauge
vllm:prefix_cache_queries_created{engine="0",model_name="tiny"} 1.7952929795266805e+09
# TYPE vllm:prefix_cache_hits_total counter
vllm:prefix_cache_hits_total{engine="0",model_name="tiny"} 608.0
# TYPE vllm:prompt_tokens_total counter
vllm:prompt_tokens_total{engine="0",model_name="tiny"} 1000.0
# TYPE vllm:prompt_tokens_cached_total counter
vllm:prompt_tokens_cached_total{engine="0",model_name="tiny"} 608.0
# TYPE vllm:cache_config_info gauge
vllm:cache_config_info{_block_size_resolved="True",block_size="32",enable_prefix_caching="True",engine="0",num_gpu_blocks="64"} 1.0
`

// oldVLLMMetrics has the names of early releases.
const oldVLLMMetrics = `# TYPE vllm:gpu_cache_usage_perc gauge
vllm:gpu_cache_usage_perc{engine="0",model_name="tiny"} 0.5
# TYPE vllm:gpu_prefix_cache_queries_total counter
vllm:gpu_prefix_cache_queries_total{engine="0",model_name="tiny"} 10.0
# TYPE vllm:gpu_prefix_cache_hits_total counter
vllm:gpu_prefix_cache_hits_total{engine="0",model_name="tiny"} 5.0
# TYPE vllm:cache_config_info gauge
vllm:cache_config_info{block_size="16",enable_prefix_caching="False",num_gpu_blocks="None"} 1.0
`

const sglangSchema = `{"paths":{"/flush_cache":{}},"components":{"schemas":{"ChatCompletionRequest":{"properties":{
"rid":{},"session_id":{},"cache_salt":{},"extra_key":{},"return_prompt_token_ids":{}}}}}}`

const sglangInfo = `{"model_path":"tiny","page_size":64,"max_total_num_tokens":120000,"enable_cache_report":true,"enable_priority_scheduling":false,"disable_radix_cache":false,
"internal_states":[{}],"version":"0.5.23","kv_events":{"publisher":"zmq","endpoint_host":"*","endpoint_port_base":5557,"topic":"kv",
"block_size":64,"dp_size":2,"replay_endpoint_port_base":6557}}`

const sglangMetrics = `# TYPE sglang:prompt_tokens_total counter
sglang:prompt_tokens_total{model_name="tiny",dp_rank="0"} 600.0
sglang:prompt_tokens_total{model_name="tiny",dp_rank="1"} 400.0
# TYPE sglang:cached_tokens_total counter
sglang:cached_tokens_total{model_name="tiny",cache_source="device"} 200.0
sglang:cached_tokens_total{model_name="tiny",cache_source="host"} 50.0
# TYPE sglang:generation_tokens_total counter
sglang:generation_tokens_total{model_name="tiny"} 30.0
# TYPE sglang:evicted_tokens_total counter
sglang:evicted_tokens_total{model_name="tiny"} 128.0
# TYPE sglang:load_back_tokens_total counter
sglang:load_back_tokens_total{model_name="tiny"} 64.0
# TYPE sglang:token_usage gauge
sglang:token_usage{model_name="tiny",dp_rank="0"} 0.1
sglang:token_usage{model_name="tiny",dp_rank="1"} 0.3
# TYPE sglang:cache_hit_rate gauge
sglang:cache_hit_rate{model_name="tiny"} 0.5
# TYPE sglang:kv_available_tokens gauge
sglang:kv_available_tokens{model_name="tiny"} 1000.0
# TYPE sglang:kv_evictable_tokens gauge
sglang:kv_evictable_tokens{model_name="tiny"} 500.0
# TYPE sglang:kv_used_tokens gauge
sglang:kv_used_tokens{model_name="tiny"} 70.0
# TYPE sglang:hicache_host_used_tokens gauge
sglang:hicache_host_used_tokens{model_name="tiny"} 10.0
# TYPE sglang:hicache_host_total_tokens gauge
sglang:hicache_host_total_tokens{model_name="tiny"} 2000.0
# TYPE sglang:num_running_reqs gauge
sglang:num_running_reqs{model_name="tiny"} 3.0
# TYPE sglang:num_queue_reqs gauge
sglang:num_queue_reqs{model_name="tiny"} 2.0
`
