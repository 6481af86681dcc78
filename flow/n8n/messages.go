package n8n

import (
	"fmt"
	"strings"
)

// noteChannel reports the channel by which a message is sent.
func (u *unit) noteChannel(channel string) {
	u.approximate(
		"CHANNEL",
		"It is sent by the agent's "+channel+" channel, which has to be connected; credentials of n8n are not used.",
	)
}

func convertTelegram(converter *converter, unit *unit) {
	if unit.p.text("operation") == "sendAndWait" {
		convertSendAndWait(converter, unit)
		return
	}
	if unit.p.text("operation") == "sendChatAction" {
		unit.approximate("OPERATION", "Nobody is shown that an answer is being written; the input flows on.")
		convertNoOp(converter, unit)
		return
	}
	env := converter.each(unit)
	data := map[string]any{"to": env.textOf("chatId"), "message": env.textOf("text")}
	if mode := unit.p.text("additionalFields.parse_mode"); mode == "HTML" ||
		mode == "MarkdownV2" ||
		mode == "Markdown" {
		data["parse_mode"] = mode
	}
	switch operation := unit.p.or("operation", "sendMessage"); {
	case unit.p.or("resource", "message") != "message":
		unit.fail("OPERATION", telegramSends)
	case telegramFiles[operation]:
		env.fileLinks(data)
	case operation != "sendMessage":
		unit.fail("OPERATION", telegramSends)
	}
	if unit.p.or("replyMarkup", "none") != "none" {
		unit.approximate("KEYBOARD", "The message is sent without its keyboard.")
	}
	unit.noteChannel("Telegram")
	s := env.emit("chatbot_a", data)
	if !unit.unsupported {
		at := fmt.Sprintf("nodes[%q]", unit.id)
		s.ref = ref{
			fields: map[string]string{
				"result.message_id": "nodes." + unit.id + ".message_id",
				"result.chat.id":    "nodes." + unit.id + ".chat_id",
			},
			closed: true,
			js: fmt.Sprintf(
				"({ ok: true, result: { message_id: %s?.message_id, chat: { id: %s?.chat_id } } })",
				at, at,
			),
		}
	}
}

// telegramFiles are the operations that send files.
var telegramFiles = map[string]bool{
	"sendPhoto":      true,
	"sendDocument":   true,
	"sendVideo":      true,
	"sendAudio":      true,
	"sendAnimation":  true,
	"sendMediaGroup": true,
}

const telegramSends = "The Telegram channel sends text and links to files, and nothing else."

// fileLinks makes a message of the captions and links of the files that n8n sends by
// their addresses.
func (env *env) fileLinks(data map[string]any) {
	unit, lines := env.u, []string{}
	add := func(caption, file any) {
		link := fmt.Sprint(env.value(file))
		if text, _ := file.(string); text == "" || !hasExpression(text) && !strings.Contains(text, "://") {
			unit.fail("FILE", "The Telegram channel sends no files, only links to them, and this file has no address.")
		}
		if caption != nil && caption != "" {
			lines = append(lines, fmt.Sprint(env.value(caption)))
		}
		lines = append(lines, link)
	}
	switch media := unit.p.objects("media.media"); {
	case unit.p.flag("binaryData"):
		unit.fail("FILE", "The Telegram channel sends no files, only links to them.")
	case len(media) > 0:
		for _, m := range media {
			add(m.at("additionalFields.caption"), m["media"])
		}
	default:
		add(unit.p.at("additionalFields.caption"), unit.p.at("file"))
	}
	if data["parse_mode"] != "HTML" {
		delete(data, "parse_mode") // Markdown would read a link's underscores
	}
	data["message"] = strings.Join(lines, "\n")
	if unit.unsupported {
		return
	}
	unit.approximate(
		"FILE",
		"The file is sent as a link, of which Telegram shows a preview; ids of files on "+
			"Telegram's servers are not links.",
	)
}

func convertSlack(converter *converter, unit *unit) {
	if unit.p.text("operation") == "sendAndWait" {
		convertSendAndWait(converter, unit)
		return
	}
	env := converter.each(unit)
	if unit.p.or("resource", "message") != "message" || unit.p.or("operation", "post") != "post" {
		converter.service(env)
		return
	}
	channel := unit.p.at("channelId")
	if unit.p.text("select") == "user" {
		channel = unit.p.at("user")
	}
	if channel == nil {
		channel = unit.p.at("channel")
	}
	data := map[string]any{
		"channel": env.value(channel),
		"message": env.textOf("text"),
		"format":  "mrkdwn",
	}
	if v := unit.p.at("otherOptions.thread_ts.replyValues.thread_ts"); v != nil {
		data["thread_ts"] = fmt.Sprint(env.value(v))
	}
	if unit.p.or("messageType", "text") != "text" {
		unit.approximate("MESSAGE", "Only the text of the message is sent, without blocks and attachments.")
	}
	if text, ok := data["channel"].(string); ok &&
		text != "" &&
		!strings.Contains(text, "{{") &&
		strings.ToUpper(text) != text {
		unit.approximate("CHANNEL_ID", "The channel is a name in n8n; here it is an id such as C0123456789.")
	}
	unit.noteChannel("Slack")
	s := env.emit("team_chat", data)
	if !unit.unsupported {
		s.ref.fields = map[string]string{"message.ts": "nodes." + unit.id + ".ts"}
	}
}

func convertDiscord(converter *converter, unit *unit) {
	if unit.p.text("operation") == "sendAndWait" {
		convertSendAndWait(converter, unit)
		return
	}
	e := converter.each(unit)
	data := map[string]any{"channel": e.textOf("channelId"), "message": e.textOf("content")}
	switch {
	case unit.version < 2 || unit.p.text("authentication") == "webhook":
		e.discordWebhook(data)
	case unit.p.or("resource", "channel") != "message" || unit.p.or("operation", "send") != "send":
		unit.fail(
			"OPERATION",
			"Only messages are sent; an http-request node can call Discord's API for everything else.",
		)
	case unit.p.text("sendTo") == "user":
		data["channel"] = e.textOf("userId")
	}
	if unit.p.has("embeds.values") || unit.p.has("files.values") {
		unit.approximate("MESSAGE", "Only the text of the message is sent, without embeds and files.")
	}
	unit.noteChannel("Discord")
	e.emit("community_chat", data)
}

// discordWebhook replaces a post to a webhook address with a message. The address is
// a secret and the only thing that identifies the channel.
func (env *env) discordWebhook(data map[string]any) {
	data["channel"] = ""
	if env.u.version < 2 {
		data["message"] = env.textOf("text")
	}
	env.u.approximate(
		"CHANNEL_ID",
		"n8n posts to a webhook address, which is a secret and is not imported. Name the channel by its id before "+
			"you activate the workflow.",
	)
	for name := range env.u.p.object("options") {
		if name != "wait" {
			env.u.approximate(
				"MESSAGE",
				"Only the text of the message is sent, without embeds, files, and a name and picture of its own.",
			)
		}
	}
}

func convertTwilio(c *converter, u *unit) {
	e := c.each(u)
	if u.p.or("resource", "sms") != "sms" {
		u.fail("OPERATION", "Calls are not made; an http-request node can call Twilio's API.")
	}
	kind, channel := "sms", "SMS"
	if u.p.flag("toWhatsapp") {
		kind, channel = "chatbot_b", "WhatsApp"
	}
	u.noteChannel(channel)
	e.emit(kind, map[string]any{"to": e.textOf("to"), "message": e.textOf("message")})
}

func convertWhatsApp(c *converter, u *unit) {
	e := c.each(u)
	if u.p.or("resource", "message") != "message" ||
		u.p.or("operation", "send") != "send" ||
		u.p.or("messageType", "text") != "text" {
		u.fail("OPERATION", "Only text messages are sent.")
	}
	u.approximate("CHANNEL", "It is sent by the agent's WhatsApp channel, through Twilio and not Meta's own API.")
	e.emit("chatbot_b", map[string]any{"to": e.textOf("recipientPhoneNumber"), "message": e.textOf("textBody")})
}

func convertEmail(converter *converter, unit *unit) {
	env := converter.each(unit)
	if unit.p.or("operation", "send") != "send" {
		unit.fail("OPERATION", "Waiting for an answer to an email: use an approval.")
	}
	data := map[string]any{
		"to":      env.textOf("toEmail"),
		"subject": env.textOf("subject"),
		"body":    env.textOf("text"),
	}
	format := unit.p.text("emailFormat")
	if html := unit.p.at("html"); html != nil && html != "" && format != "text" {
		data["body"], data["html"] = env.textOf("html"), true
	}
	env.setRecipients(data, "options.ccEmail", "options.bccEmail", "options.replyTo")
	if unit.p.text("attachments") != "" || unit.p.text("options.attachments") != "" {
		unit.approximate("BINARY", "Attachments are not sent.")
	}
	unit.noteChannel("email")
	env.emit("email", data)
}

// setRecipients sets further recipients.
func (env *env) setRecipients(data map[string]any, cc, bcc, reply string) {
	for key, path := range map[string]string{
		"cc":       cc,
		"bcc":      bcc,
		"reply_to": reply,
	} {
		if env.u.p.text(path) != "" {
			data[key] = env.textOf(path)
		}
	}
}

// convertGmail converts sending to an email node, and all other operations to requests
// to Gmail.
func convertGmail(converter *converter, unit *unit) {
	if unit.p.text("operation") == "sendAndWait" {
		convertSendAndWait(converter, unit)
		return
	}
	env := converter.each(unit)
	if unit.p.or("resource", "message") != "message" || unit.p.or("operation", "send") != "send" {
		converter.service(env)
		return
	}
	data := map[string]any{
		"to":      env.textOf("sendTo"),
		"subject": env.textOf("subject"),
		"body":    env.textOf("message"),
	}
	if unit.version < 2 {
		data["to"] = env.textOf("toList.0")
		if list := unit.p.list("toList"); len(list) > 0 {
			data["to"] = env.value(list)
		}
	}
	if unit.version >= 2 && unit.p.or("emailType", "html") == "html" {
		data["html"] = true
	}
	env.setRecipients(data, "options.ccList", "options.bccList", "options.replyTo")
	if unit.p.has("options.attachmentsUi") {
		unit.approximate("BINARY", "Attachments are not sent.")
	}
	unit.noteChannel("email")
	env.emit("email", data)
}
