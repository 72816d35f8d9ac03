// Package dashboard is the dashboard of the sidecar: one page at /ui/ of the admin listener that shows what the engines' caches
// give, what that saves, and what was done to recent requests.
//
//	proxy ── Detail ──▶ Recent ──┐
//	                             ├─▶ Source ──▶ Handler ──▶ /ui/            page, scripts, style: embedded
//	figures, index ──────────────┘                          /ui/data.json   Data, asked for every two seconds
//	                                                        /ui/requests/…  Detail
//	                                                        /ui/engines/…   Picture, of the engine that is looked at
//
// # Types to know
//
//   - [Source] is asked for what the page shows: [Data], for one request a [Detail], for one engine a [Picture].
//   - [Recent] remembers the last requests and how the hit ratio went. It is a Source on its own; a server adds what
//     Recent cannot know ([Saving], [Engine]).
//   - [Handler] serves it all.
//
// # Use
//
//	recent := dashboard.NewRecent(dashboard.Options{TextBytes: 64 << 10}) // 0, the default: no texts are kept
//	server.Admin().Handle("/ui/", dashboard.Handler(recent))
//	recent.Add(dashboard.Detail{Request: dashboard.Request{ID: id, PromptTokens: new(2048), CachedTokens: new(1536)}})
//
// # Caveats
//
//   - The page asks for no key, as nothing on the admin listener does. With Options.TextBytes above 0 it shows prompts.
//   - A figure that is not known is nil and shown as such, never as 0.
//   - In shadow mode everything that would have been done is named so.
//   - The page loads nothing from elsewhere and runs no inline script; its Content-Security-Policy forbids both.
package dashboard
