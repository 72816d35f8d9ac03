package dashboard_test

import (
	"bytes"
	"flag"
	"image"
	"image/draw"
	"image/png"
	"os"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/ragpilot/ragpilot/internal/sidecar/dashboard"
	"github.com/ragpilot/ragpilot/internal/testkit/browsertest"
)

var update = flag.Bool("update", false, "draw testdata/screenshot.png again")

const screenshot = "testdata/screenshot.png"

// TestScreenshot draws the picture for the documentation with -update, and else checks that there is one.
func TestScreenshot(t *testing.T) {
	if *update {
		p := open(browsertest.Start(t), t, dashboard.Handler(newSample(60, dashboard.Options{TextBytes: 4 << 10})), "")
		p.wait(`document.querySelectorAll("#chart .point").length > 50`)
		raw, err := chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
		p.do(err)
		p.quiet()
		p.do(os.WriteFile(screenshot, small(t, raw), 0o644))
	}
	raw, err := os.ReadFile(screenshot)
	if err != nil {
		t.Fatal(err)
	}
	c, err := png.DecodeConfig(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	if c.Width != 1280 || c.Height != 800 || len(raw) >= 200_000 {
		t.Errorf("%d × %d pixels, %d bytes", c.Width, c.Height, len(raw))
	}
}

// small encodes a picture again, without transparency and as small as the standard encoder can.
func small(t *testing.T, raw []byte) []byte {
	t.Helper()
	from, err := png.Decode(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	to := image.NewRGBA(from.Bounds())
	draw.Draw(to, to.Rect, from, from.Bounds().Min, draw.Src)
	var b bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&b, to); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
