package agent

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
)

// Limits of the files that a website's visitors send. They apply per day, and
// keep visitors from displacing an agent's other files.
const (
	MaxVisitorFileBytes = 50 << 20  // of a visitor
	MaxWidgetFileBytes  = 200 << 20 // of all visitors of a widget
	maxFileTypes        = 50
)

// fileMedia are the files that visitors may send by default: media types by
// extension.
var fileMedia = map[string]string{
	"jpg":  "image/jpeg",
	"jpeg": "image/jpeg",
	"png":  "image/png",
	"gif":  "image/gif",
	"webp": "image/webp",
	"bmp":  "image/bmp",
	"heic": "image/heic",
	"mp3":  "audio/mpeg",
	"m4a":  "audio/mp4",
	"ogg":  "audio/ogg",
	"wav":  "audio/wav",
	"mp4":  "video/mp4",
	"webm": "video/webm",
	"mov":  "video/quicktime",
	"pdf":  "application/pdf",
	"txt":  "text/plain",
	"csv":  "text/csv",
	"md":   "text/markdown",
	"rtf":  "application/rtf",
	"json": "application/json",
	"doc":  "application/msword",
	"docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
	"xls":  "application/vnd.ms-excel",
	"xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
	"ppt":  "application/vnd.ms-powerpoint",
	"pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
	"odt":  "application/vnd.oasis.opendocument.text",
	"ods":  "application/vnd.oasis.opendocument.spreadsheet",
	"odp":  "application/vnd.oasis.opendocument.presentation",
	"zip":  "application/zip",
}

var extensionPattern = regexp.MustCompile(`^[a-z0-9]{1,10}$`)

// TakesFiles reports whether visitors may send files.
func (c *WidgetConfig) TakesFiles() bool {
	return c.Files == nil || *c.Files
}

// withFileDefaults returns the config with defaults for file limits that are not
// set.
func (c WidgetConfig) withFileDefaults() WidgetConfig {
	takes := c.TakesFiles()
	c.Files = &takes
	c.MaxFiles = cmp.Or(c.MaxFiles, 5)
	c.MaxFileSize = cmp.Or(c.MaxFileSize, 10)
	if len(c.FileTypes) == 0 {
		c.FileTypes = slices.Sorted(maps.Keys(fileMedia))
	}
	return c
}

// applyFiles writes the given file fields into config.
func (ch *WidgetConfigChange) applyFiles(config *WidgetConfig) {
	if ch.Files.Given {
		config.Files = nil
		if !ch.Files.Null {
			config.Files = &ch.Files.Value
		}
	}
	if ch.FileTypes.Given {
		config.FileTypes = nil
		for _, t := range ch.FileTypes.Value {
			if t = strings.ToLower(strings.TrimPrefix(
				strings.TrimSpace(t),
				".",
			)); !slices.Contains(config.FileTypes, t) {
				config.FileTypes = append(config.FileTypes, t)
			}
		}
	}
	ch.MaxFiles.Into(&config.MaxFiles)
	ch.MaxFileSize.Into(&config.MaxFileSize)
}

func (c *WidgetConfig) validateFiles(is *Issues) {
	is.Check(len(c.FileTypes) <= maxFileTypes, "config.fileTypes", fmt.Sprintf("must have at most %d", maxFileTypes))
	for _, t := range c.FileTypes {
		is.Check(extensionPattern.MatchString(t), "config.fileTypes", "must be extensions such as pdf")
	}
	is.Check(
		c.MaxFiles >= 0 && c.MaxFiles <= MaxMessageAttachments,
		"config.maxFiles",
		fmt.Sprintf("must be 1 to %d", MaxMessageAttachments),
	)
	is.Check(
		c.MaxFileSize >= 0 && c.MaxFileSize <= MaxAttachmentBytes>>20,
		"config.maxFileSize",
		fmt.Sprintf("must be 1 to %d", MaxAttachmentBytes>>20),
	)
}

// fileExtension returns the extension of a name in lower case, without its dot.
func fileExtension(name string) string {
	return strings.ToLower(strings.TrimPrefix(path.Ext(name), "."))
}

// FileMedia returns the media type for the extension of a file's name.
func FileMedia(name string) string {
	return cmp.Or(fileMedia[fileExtension(name)], "application/octet-stream")
}

// executableMagic are the first bytes of executables for Windows, Linux and macOS.
var executableMagic = [][]byte{[]byte("MZ"), []byte("\x7fELF"), []byte("\xcf\xfa\xed\xfe"), []byte("\xca\xfe\xba\xbe")}

// CheckFile checks a visitor's file by its name, its first bytes and the media
// type detected from them.
func (c *WidgetConfig) CheckFile(name string, head []byte, media string) error {
	extension := fileExtension(name)
	if !slices.Contains(c.FileTypes, extension) {
		return Invalid("file", "is of a type that this chat does not take").With("file_types", c.FileTypes)
	}
	named, known := fileMedia[extension]
	mislabelled := known &&
		slices.ContainsFunc(executableMagic, func(start []byte) bool {
			return bytes.HasPrefix(head, start)
		})
	if IsShownMedia(named) {
		kind, _, _ := strings.Cut(named, "/")
		mislabelled = mislabelled ||
			named == "application/pdf" && media != named ||
			kind == "image" && !strings.HasPrefix(media, "image/")
	}
	if mislabelled {
		return Invalid("file", "is not what its name says")
	}
	return nil
}

// FilesText returns the text of a message that consists only of files.
func FilesText(files []Attachment) string {
	var text []string
	for _, f := range files {
		text = append(text, "["+cmp.Or(f.Type, "file")+": "+strings.Map(func(r rune) rune {
			if r == '[' || r == ']' {
				return '_'
			}
			return r
		}, f.Name)+"]")
	}
	return strings.Join(text, " ")
}

// FileKind returns image, audio, video or file.
func FileKind(media string) string {
	kind, _, _ := strings.Cut(media, "/")
	if slices.Contains([]string{"image", "audio", "video"}, kind) {
		return kind
	}
	return "file"
}
