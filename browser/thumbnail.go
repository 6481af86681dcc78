package browser

import (
	"bytes"
	"context"
	"encoding/base64"
	"image"
	"image/color"
	"image/jpeg"
	"time"

	"satchel/agent"
)

// Limits of thumbnails.
const (
	thumbnailWidth   = 480 // pixels
	thumbnailEvery   = 5 * time.Second
	thumbnailTimeout = 3 * time.Second
)

// thumbnail is the latest thumbnail of a session.
type thumbnail struct {
	slot chan struct{} // holds one token, for making a thumbnail
	at   time.Time     // when it was made; used by the holder of the slot
	jpeg []byte
}

// Thumbnail returns a small JPEG picture of the active tab that is at most a few
// seconds old.
func (s *Session) Thumbnail(ctx context.Context) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, thumbnailTimeout)
	defer cancel()
	select {
	case <-s.thumbnail.slot:
		defer func() { s.thumbnail.slot <- struct{}{} }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	t := &s.thumbnail
	if t.jpeg != nil && time.Since(t.at) < thumbnailEvery {
		return t.jpeg, nil
	}
	made, err := s.capture(ctx)
	if err == nil {
		t.jpeg, t.at = made, time.Now()
	}
	return made, err
}

// lastThumbnail returns the thumbnail to keep when a session ends, or nil if the
// session failed or none can be made in time.
func (s *Session) lastThumbnail(problem string) []byte {
	if problem != "" || s.context == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), thumbnailTimeout/2)
	defer cancel()
	made, err := s.Thumbnail(ctx)
	if err != nil {
		s.browser.log.Debug("take last screenshot of browser session", "session", s.id, "error", err)
	}
	return made
}

// capture returns a new thumbnail of the active tab.
func (s *Session) capture(ctx context.Context) ([]byte, error) {
	p := s.ActivePage()
	if p == nil {
		return nil, agent.NotFound("thumbnail", s.id)
	}
	cdp, err := p.CDP(ctx)
	if err != nil {
		return nil, err
	}
	// fails if the tab is closed, which detaches it anyway
	defer func() {
		_, _ = Within(ctx, func() (any, error) {
			return nil, cdp.Detach()
		})
	}()
	answer, err := result(ctx, s, func() (any, error) {
		return cdp.Send("Page.captureScreenshot", map[string]any{
			"format":           "jpeg",
			"quality":          70,
			"optimizeForSpeed": true,
		})
	})
	if err != nil {
		return nil, err
	}
	fields, _ := answer.(map[string]any)
	encoded, _ := fields["data"].(string)
	raw, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return nil, err
	}
	return shrink(raw)
}

// shrink scales a JPEG down to the width of thumbnails.
func shrink(raw []byte) ([]byte, error) {
	full, err := jpeg.Decode(bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	size := full.Bounds()
	if size.Dx() <= thumbnailWidth {
		return raw, nil
	}
	var out bytes.Buffer
	err = jpeg.Encode(
		&out,
		downscale(full, thumbnailWidth, max(1, size.Dy()*thumbnailWidth/size.Dx())),
		&jpeg.Options{Quality: 75},
	)
	return out.Bytes(), err
}

// downscale scales a picture down: each pixel is the average of those that it covers.
func downscale(full image.Image, width, height int) *image.RGBA {
	from, to := full.Bounds(), image.NewRGBA(image.Rect(0, 0, width, height))
	for y := range height {
		for x := range width {
			var r, g, b, n uint32
			for sy := from.Min.Y + y*from.Dy()/height; sy < from.Min.Y+max(
				(y+1)*from.Dy()/height,
				y*from.Dy()/height+1,
			); sy++ {
				for sx := from.Min.X + x*from.Dx()/width; sx < from.Min.X+max(
					(x+1)*from.Dx()/width,
					x*from.Dx()/width+1,
				); sx++ {
					pr, pg, pb, _ := full.At(sx, sy).RGBA()
					r, g, b, n = r+pr>>8, g+pg>>8, b+pb>>8, n+1
				}
			}
			to.SetRGBA(x, y, color.RGBA{
				R: uint8(r / n),
				G: uint8(g / n),
				B: uint8(b / n),
				A: 255,
			})
		}
	}
	return to
}
