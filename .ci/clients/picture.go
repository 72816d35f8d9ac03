package clients

import (
	"bytes"
	"encoding/base64"
	"image"
	"image/color"
	"image/jpeg"
)

// picture draws a picture and writes it as JPEG with a quality, as a program does that makes pictures smaller before each request.
func picture(seed, quality int) []byte {
	img := image.NewRGBA(image.Rect(0, 0, 40, 40))
	for y := range 40 {
		for x := range 40 {
			img.Set(x, y, color.RGBA{R: uint8(x * 6), G: uint8(y * 6), B: uint8((x*y + seed*31) % 251), A: 255})
		}
	}
	var b bytes.Buffer
	check(jpeg.Encode(&b, img, &jpeg.Options{Quality: quality}))
	return b.Bytes()
}

func base64Picture(seed, quality int) string {
	return base64.StdEncoding.EncodeToString(picture(seed, quality))
}

func dataURL(seed, quality int) string {
	return "data:image/jpeg;base64," + base64Picture(seed, quality)
}
