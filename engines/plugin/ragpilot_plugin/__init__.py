"""Plugins for vLLM and SGLang that report to ragpilot which requests lost their cached prompt: POST {"request_ids": [...],
"prefixes": [...]} to $RAGPILOT_URL/evict. request_ids are requests of whose prompts nothing can be reused any more; prefixes
are requests of whose prompts only the first resident_tokens are still cached. IDs are the engine's own; ragpilot finds its ID
in them.

Off unless RAGPILOT_URL is set. Further settings: RAGPILOT_PLUGIN_KEY (bearer token), RAGPILOT_PLUGIN_REQUESTS (how many
requests are followed, 20000), RAGPILOT_PLUGIN_PREFIX (only requests whose ID begins so are followed).

The scheduler's thread only notes what happens; following requests and posting is done by a thread of the plugin. Any error
of the plugin switches it off and leaves the engine alone. The modules vllm and sglang have the entry points.
"""
