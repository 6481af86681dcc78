package gateways

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"

	"satchel/agent"
	"satchel/agent/egress"
	"satchel/store"
)

// Limits of downloading the files of messages.
const (
	filesAtOnce   = 8
	filesPerAgent = 2
	fileTimeout   = 2 * time.Minute // for an attempt
	maxFileNode   = 10 << 20        // bytes of a file that a workflow reads
	fileAttempts  = 6
	fileSniffSize = 512 // bytes by which the type of a file is recognized
)

// filePauses are the pauses after failed attempts.
var filePauses = [fileAttempts - 1]time.Duration{
	5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute, time.Hour,
}

// fileHost is a platform from which the files of messages are downloaded.
type fileHost interface {
	platform
	// file returns how to download a file of a message.
	file(ctx context.Context, g *Gateways, d *store.AttachmentDownload) (fileRequest, error)
}

// fileRequest is how to download a file.
type fileRequest struct {
	url string
	// credential is the value of the header Authorization, which is only sent to hosts;
	// empty: none.
	credential string
	hosts      []string
	direct     bool   // url has a credential in it: redirects are not followed
	name       string // used if the message has none
}

// attachments downloads the files of messages.
type attachments struct {
	queue *conversationQueue
	guard *egress.Client
}

// newAttachments returns the queue that downloads the files of messages. Its work is
// stored as rows of the agent's file.
func newAttachments(gateways *Gateways, guard *egress.Client) *attachments {
	queue := newConversationQueue(conversationOptions{
		task:     "download attachments",
		limit:    filesAtOnce,
		perAgent: filesPerAgent,
		log:      gateways.log,
		now:      func() time.Time { return gateways.now() },
		step:     gateways.downloadNext,
		due: func(ctx context.Context, db *store.DB, limit int) ([]string, agent.Time, error) {
			if db.Suspended() {
				return nil, agent.Time{}, nil
			}
			return db.DueAttachments(ctx, agent.At(gateways.now()), limit)
		},
	})
	gateways.folder.OnPending(func(db *store.DB, p store.Pending) {
		queue.agents.Notify(db, p.Attachments.Time, p.Changed)
	})
	return &attachments{queue, guard}
}

// downloadNext tries to download the first due file of a conversation. Each attempt is
// counted before it begins, so that a file that crashes the program is not downloaded
// again and again.
func (g *Gateways) downloadNext(ctx context.Context, key conversation) error {
	if key.db.Suspended() {
		return nil
	}
	download, err := key.db.BeginAttachment(ctx, key.id, agent.At(g.now()))
	if err != nil || download == nil {
		return err
	}
	if download.Attempt > fileAttempts { // the program ended during the last attempt
		return key.db.FailAttachment(ctx, download, "the download was cut off each time", agent.Time{})
	}
	fetch, cancel := context.WithTimeout(ctx, fileTimeout)
	defer cancel()
	file, err := g.download(fetch, key.db, download)
	stored := context.WithoutCancel(ctx)
	switch {
	case err == nil:
		defer file.Discard() // does nothing once it is kept
		return key.db.EndAttachment(stored, download, file)
	case ctx.Err() != nil:
		return ctx.Err() // the next Start tries again
	}
	g.log.Info(
		"download attachment",
		"agent", key.db.ID(),
		"message", download.MessageID,
		"gateway", download.Gateway.ID,
		"error", err,
	)
	return key.db.FailAttachment(stored, download, fileProblem(err), g.nextFileAttempt(download, err))
}

// nextFileAttempt returns when a failed download is tried again, or zero for never.
func (g *Gateways) nextFileAttempt(download *store.AttachmentDownload, err error) agent.Time {
	var lasting *clientError
	status := statusOf(err)
	busy := status != nil &&
		(status.status >= 500 ||
			status.status == http.StatusTooManyRequests ||
			status.status == http.StatusRequestTimeout)
	switch {
	case download.Attempt >= fileAttempts, errors.Is(err, store.ErrTooLarge), egress.IsPermanent(err),
		status != nil && !busy,
		status == nil && errors.As(err, &lasting):
		return agent.Time{}
	}
	pause := filePauses[download.Attempt-1]
	if status != nil {
		pause = max(pause, min(status.retryAfter, time.Hour))
	}
	return agent.At(g.now().Add(pause))
}

// fileProblem returns the reason why a file was not downloaded, as a text for people.
func fileProblem(err error) string {
	var refused *egress.Error
	switch {
	case errors.Is(err, store.ErrTooLarge), errors.As(err, &refused) && refused.Code == egress.CodeTooLarge:
		return "the file is larger than 20 MB"
	case errors.As(err, &refused) && refused.Code == egress.CodeCredentialHost:
		return "the file is not at one of the platform's own addresses"
	}
	return clientMessage(err)
}

// download downloads a file into the agent's file.
func (g *Gateways) download(
	ctx context.Context,
	db *store.DB,
	download *store.AttachmentDownload,
) (*store.Upload, error) {
	host, ok := platformOf(download.Gateway.Type, download.Gateway.Config).(fileHost)
	switch {
	case download.Gateway.ID == "":
		return nil, newClientError("the gateway was deleted", nil)
	case download.Gateway.Locked:
		return nil, newClientError(lockedConfig, nil)
	case !ok:
		return nil, newClientError("files of this platform are not downloaded", nil)
	case download.Attachment.Size > agent.MaxAttachmentBytes:
		return nil, store.ErrTooLarge
	}
	from, err := host.file(ctx, g, download)
	if err != nil {
		return nil, err
	}
	resp, err := g.openFile(ctx, from)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body := bufio.NewReaderSize(resp.Body, fileSniffSize)
	head, err := body.Peek(fileSniffSize)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	media := mediaOf(head, cmp.Or(download.Attachment.MimeType, resp.Header.Get("Content-Type")))
	if strings.HasPrefix(media, "text/html") &&
		!strings.HasPrefix(download.Attachment.MimeType, "text/html") &&
		from.credential != "" {
		return nil, newClientError(
			"the platform sent a page in place of the file: the credential may not read files",
			nil,
		)
	}
	return db.ReceiveFile(
		ctx,
		fileName(download.Attachment, from, resp.Header, media),
		media,
		body,
		agent.MaxAttachmentBytes,
	)
}

// openFile requests a file and returns the successful response.
func (g *Gateways) openFile(ctx context.Context, from fileRequest) (*http.Response, error) {
	if from.credential != "" {
		hosts, err := egress.ParseHosts("url", from.hosts)
		if err != nil {
			return nil, err
		}
		ctx = egress.WithCredential(ctx, egress.HeaderCredential{
			Hosts:  hosts,
			Header: map[string]string{"Authorization": from.credential},
		})
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, from.url, nil)
	if err != nil || from.url == "" {
		return nil, newClientError("the platform gave no usable address of the file", err)
	}
	req.Header.Set("User-Agent", "Satchel/"+g.version)
	client := g.files.guard.HTTP()
	if from.direct {
		client.CheckRedirect = func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		}
	}
	resp, err := client.Do(req)
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err // its text contains the URL, which may contain a credential
	}
	if err != nil {
		return nil, err
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		_ = resp.Body.Close()
		return nil, refusal(
			&statusError{
				platform:   "the platform",
				status:     resp.StatusCode,
				retryAfter: egress.RetryAfter(resp.Header.Get("Retry-After"), g.now()),
			},
			"the platform",
			"credential for the file",
		)
	}
	return resp, nil
}

// mediaOf returns the media type of a file, detected from its first bytes. If they do
// not identify it, it is the type that the platform stated, unless that is one that the
// first bytes would have shown.
func mediaOf(head []byte, stated string) string {
	found, _, _ := mime.ParseMediaType(http.DetectContentType(head))
	given, _, err := mime.ParseMediaType(stated)
	switch found {
	case "application/ogg":
		return "audio/ogg"
	case "audio/wave":
		return "audio/wav"
	case "video/mp4", "video/webm":
		if strings.HasPrefix(given, "audio/") {
			return given
		}
	case "application/octet-stream", "text/plain", "text/xml", "application/zip", "application/x-gzip":
		visible := agent.IsShownMedia(given) && (strings.HasPrefix(given, "image/") || given == "application/pdf")
		if err == nil && !visible {
			return given
		}
	}
	return found
}

// fileName returns the name of a file: the one in the message, the platform's, or one
// made up from its type.
func fileName(a agent.Attachment, from fileRequest, h http.Header, media string) string {
	_, params, _ := mime.ParseMediaType(h.Get("Content-Disposition"))
	if name := cmp.Or(a.Name, params["filename"], from.name); name != "" {
		return agent.FileName(name)
	}
	kind, _, _ := strings.Cut(media, "/")
	if kind == "application" || kind == "text" {
		kind = "file"
	}
	return agent.FileName(cmp.Or(a.Type, kind) + fileExtension(media))
}

// fileExtension returns the usual extension of a media type, with its dot.
func fileExtension(media string) string {
	if ext := map[string]string{
		"image/jpeg": ".jpg",
		"audio/ogg":  ".ogg",
		"audio/mpeg": ".mp3",
		"audio/wav":  ".wav",
		"video/mp4":  ".mp4",
		"text/plain": ".txt",
	}[media]; ext != "" {
		return ext
	}
	if all, _ := mime.ExtensionsByType(media); len(all) > 0 {
		return all[0]
	}
	return ""
}

// hostsOf returns the hosts that may receive a platform's credential: its own, and that
// of a base URL in the config.
func hostsOf(configured string, own ...string) []string {
	if u, err := url.Parse(configured); err == nil && u.Host != "" {
		return append(own, u.Scheme+"://"+u.Host)
	}
	return own
}

// file returns the URL of a file that Slack's post contained.
func (slack) file(_ context.Context, _ *Gateways, d *store.AttachmentDownload) (fileRequest, error) {
	c := d.Gateway.Config
	return fileRequest{
		url:        d.Attachment.URL,
		credential: "Bearer " + c.BotToken,
		hosts:      hostsOf(c.APIBaseURL, "slack.com", "*.slack.com"),
	}, nil
}

// file returns the URL of a file at Discord, which is signed.
func (discord) file(_ context.Context, _ *Gateways, d *store.AttachmentDownload) (fileRequest, error) {
	return fileRequest{url: d.Attachment.URL}, nil
}

// file returns the URL of a file that a custom webhook's post contained.
func (webhook) file(_ context.Context, _ *Gateways, d *store.AttachmentDownload) (fileRequest, error) {
	return fileRequest{url: d.Attachment.URL}, nil
}

// file returns the URL of a file at Twilio, which redirects to its storage.
func (twilio) file(_ context.Context, _ *Gateways, d *store.AttachmentDownload) (fileRequest, error) {
	c := d.Gateway.Config
	return fileRequest{
		url:        d.Attachment.URL,
		credential: "Basic " + base64.StdEncoding.EncodeToString([]byte(c.AccountSID+":"+c.AuthToken)),
		hosts:      hostsOf(c.APIBaseURL, "twilio.com", "*.twilio.com"),
	}, nil
}

// file asks Telegram for the location of a file, see
// https://core.telegram.org/bots/api#getfile. The bot's token is part of the URL.
func (tg telegram) file(
	ctx context.Context,
	gateways *Gateways,
	download *store.AttachmentDownload,
) (fileRequest, error) {
	config := download.Gateway.Config
	var found struct {
		Size int64  `json:"file_size"`
		Path string `json:"file_path"`
	}
	if err := tg.call(
		ctx, gateways, config, "getFile", true,
		map[string]string{"file_id": download.Attachment.ID},
		&found,
	); err != nil {
		var status *statusError
		if errors.As(err, &status) && bytes.Contains(status.body, []byte("too big")) {
			return fileRequest{}, store.ErrTooLarge
		}
		return fileRequest{}, err
	}
	if found.Size > agent.MaxAttachmentBytes {
		return fileRequest{}, store.ErrTooLarge
	}
	if found.Path == "" || strings.HasPrefix(found.Path, "/") || strings.Contains(found.Path, "..") {
		return fileRequest{}, newClientError(telegramMalformed, nil)
	}
	address := baseURL(config.APIBaseURL, telegramBase) + "/file/bot" + url.PathEscape(config.BotToken) + "/" +
		(&url.URL{Path: found.Path}).EscapedPath()
	return fileRequest{
		url:    address,
		direct: true,
		name:   cmp.Or(download.Attachment.Type, "file") + path.Ext(found.Path),
	}, nil
}

// file asks Resend for the location of a file, see
// https://resend.com/docs/api-reference/emails/retrieve-received-email-attachment. The
// URL is signed.
func (r resend) file(ctx context.Context, g *Gateways, d *store.AttachmentDownload) (fileRequest, error) {
	var found struct {
		URL string `json:"download_url"`
	}
	at := "/emails/receiving/" + url.PathEscape(d.ExternalID) + "/attachments/" + url.PathEscape(d.Attachment.ID)
	if err := g.call(
		ctx,
		r.call(d.Gateway.Config, http.MethodGet, at, nil),
		&found,
	); err != nil {
		return fileRequest{}, refusal(err, "Resend", "API key")
	}
	return fileRequest{url: found.URL}, nil
}

// StoredFile is a file of a message with its content.
type StoredFile struct {
	Name, MediaType string
	Data            []byte
}

// Attachment returns a file of a message with its content, at most 10 MB. If its
// download is due, Attachment waits for it.
func (g *Gateways) Attachment(ctx context.Context, db *store.DB, messageID int64, count int) (StoredFile, error) {
	file, err := db.Attachment(ctx, messageID, count)
	if agent.ErrorCode(err) == agent.CodeConflict {
		id, e := db.MessageConversation(ctx, messageID)
		if e != nil {
			return StoredFile{}, e
		}
		key := conversation{db, id}
		for range agent.MaxMessageAttachments { // each step handles one file
			g.files.queue.steps.Enqueue(key)
			if err := g.files.queue.steps.Wait(ctx, key); err != nil {
				return StoredFile{}, err
			}
			if file, err = db.Attachment(ctx, messageID, count); agent.ErrorCode(err) != agent.CodeConflict {
				break
			}
		}
	}
	if err != nil {
		return StoredFile{}, err
	}
	if file.Size > maxFileNode {
		return StoredFile{}, agent.Invalid("index", "is of a file of more than 10 MB, which a workflow cannot read")
	}
	var data bytes.Buffer
	err = file.WriteTo(ctx, &data)
	return StoredFile{file.Name, file.MediaType, data.Bytes()}, err
}
