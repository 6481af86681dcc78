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
func (session *Session) Thumbnail(ctx context.Context) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, thumbnailTimeout)
	defer cancel()
	select {
	case <-session.thumbnail.slot:
		defer func() { session.thumbnail.slot <- struct{}{} }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	t := &session.thumbnail
	if t.jpeg != nil && time.Since(t.at) < thumbnailEvery {
		return t.jpeg, nil
	}
	made, err := session.capture(ctx)
	if err == nil {
		t.jpeg, t.at = made, time.Now()
	}
	return made, err
}

// lastThumbnail returns the thumbnail to keep when a session ends, or nil if the
// session failed or none can be made in time.
func (session *Session) lastThumbnail(problem string) []byte {
	if problem != "" || session.context == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), thumbnailTimeout/2)
	defer cancel()
	made, err := session.Thumbnail(ctx)
	if err != nil {
		session.browser.log.Debug("take last screenshot of browser session", "session", session.id, "error", err)
	}
	return made
}

// capture returns a new thumbnail of the active tab.
func (session *Session) capture(ctx context.Context) ([]byte, error) {
	page := session.ActivePage()
	if page == nil {
		return nil, agent.NotFound("thumbnail", session.id)
	}
	cdp, err := page.CDP(ctx)
	if err != nil {
		return nil, err
	}
	// fails if the tab is closed, which detaches it anyway
	defer func() {
		_, _ = Within(ctx, func() (any, error) {
			return nil, cdp.Detach()
		})
	}()
	answer, err := result(ctx, session, func() (any, error) {
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
	for row := range height {
		for column := range width {
			var number, g, right, count uint32
			for sy := from.Min.Y + row*from.Dy()/height; sy < from.Min.Y+max(
				(row+1)*from.Dy()/height,
				row*from.Dy()/height+1,
			); sy++ {
				for sx := from.Min.X + column*from.Dx()/width; sx < from.Min.X+max(
					(column+1)*from.Dx()/width,
					column*from.Dx()/width+1,
				); sx++ {
					pr, pg, pb, _ := full.At(sx, sy).RGBA()
					number, g, right, count = number+pr>>8, g+pg>>8, right+pb>>8, count+1
				}
			}
			to.SetRGBA(column, row, color.RGBA{
				R: uint8(number / count),
				G: uint8(g / count),
				B: uint8(right / count),
				A: 255,
			})
		}
	}
	return to
}
