// Package browsertest starts a real Chromium for tests.
package browsertest

import (
	"context"
	"os"
	"os/exec"
	"slices"
	"testing"

	"github.com/chromedp/chromedp"
)

// Start starts a Chromium and returns the context of its tabs. Without one the test is skipped, or fails if
// RAGPILOT_REQUIRE_BROWSER=1. CHROMIUM may hold its path.
func Start(t testing.TB) context.Context {
	t.Helper()
	program := os.Getenv("CHROMIUM")
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "headless_shell"} {
		if program == "" {
			program, _ = exec.LookPath(name)
		}
	}
	if program == "" {
		const message = "no Chromium found: set CHROMIUM to its path, or have chromium or google-chrome in PATH"
		if os.Getenv("RAGPILOT_REQUIRE_BROWSER") == "1" {
			t.Fatal(message)
		}
		t.Skip(message)
	}
	options := append(slices.Clip(chromedp.DefaultExecAllocatorOptions[:]),
		chromedp.ExecPath(program), chromedp.NoSandbox, chromedp.DisableGPU, // root cannot have the sandbox; it meets our own pages only
		chromedp.Flag("font-render-hinting", "none"), chromedp.Flag("hide-scrollbars", true))
	ctx, stop := chromedp.NewExecAllocator(context.WithoutCancel(t.Context()), options...)
	t.Cleanup(stop)
	ctx, closeBrowser := chromedp.NewContext(ctx)
	t.Cleanup(closeBrowser)
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("%s: %v", program, err)
	}
	return ctx
}
