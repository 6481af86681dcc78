package agent

import (
	"strings"
	"testing"
)

// TestCheckFile: the type of a visitor's file must be in the list and match its name.
func TestCheckFile(t *testing.T) {
	usual := WidgetConfig{}.WithDefaults()
	few := WidgetConfig{FileTypes: []string{"exe", "svg"}}.WithDefaults()
	for _, tc := range []struct {
		config            *WidgetConfig
		name, head, media string
		ok                bool
	}{
		{&usual, "a.png", "\x89PNG", "image/png", true},
		{&usual, "a.PNG", "\xff\xd8\xff", "image/jpeg", true}, // another image format
		{&usual, "a.png", "<html>", "text/html", false},
		{&usual, "a.pdf", "MZ", "application/octet-stream", false},
		{&usual, "a.pdf", "%PDF-1.7", "application/pdf", true},
		{&usual, "a.docx", "PK", "application/zip", true},
		{&usual, "a.docx", "MZ\x90", "application/octet-stream", false},
		{&usual, "a.txt", "\x7fELF", "application/octet-stream", false},
		{&usual, "a.txt", "<html>", "text/html", true}, // sent back as application/octet-stream
		{&usual, "a.html", "<html>", "text/html", false},
		{&usual, "a.svg", "<svg", "image/svg+xml", false},
		{&usual, "a.pdf.exe", "MZ", "application/octet-stream", false},
		{&usual, "png", "\x89PNG", "image/png", false},
		{&few, "a.exe", "MZ", "application/octet-stream", true},
		{&few, "a.png", "\x89PNG", "image/png", false},
	} {
		if err := tc.config.CheckFile(tc.name, []byte(tc.head), tc.media); (err == nil) != tc.ok {
			t.Errorf("%s %q: %v", tc.name, tc.head, err)
		}
	}
}

// TestFilesText: file names cannot break out of the text that stands for files.
func TestFilesText(t *testing.T) {
	if got := FilesText([]Attachment{
		{Type: "image", Name: "a].png"},
		{Name: "b.pdf"},
	}); got != "[image: a_.png] [file: b.pdf]" {
		t.Error(got)
	}
	if files := (&VisitorMessage{ID: "1"}); files.Validate(0) == nil || files.Validate(1) != nil {
		t.Error("a message must have text or files")
	}
}

// TestWidgetFilesConfig: visitors may send files unless the config says
// otherwise.
func TestWidgetFilesConfig(t *testing.T) {
	var c WidgetConfig
	if !c.TakesFiles() || !*c.WithDefaults().Files {
		t.Error("files are off by default")
	}
	WidgetConfigChange{Files: Some(false), FileTypes: Some([]string{".PDF", "pdf", " png"})}.apply(&c)
	if c.TakesFiles() || strings.Join(c.FileTypes, " ") != "pdf png" || strings.Join(c.fields(), " ") == "" {
		t.Errorf("got %+v", c)
	}
	null := Optional[bool]{Given: true, Null: true}
	WidgetConfigChange{Files: null}.apply(&c)
	if !c.TakesFiles() {
		t.Error("null is not the default")
	}
	for field, bad := range map[string]WidgetConfig{
		"fileTypes":   {FileTypes: []string{"*"}},
		"maxFiles":    {MaxFiles: 21},
		"maxFileSize": {MaxFileSize: 21},
	} {
		var is Issues
		if bad.validate(&is); !strings.Contains(is.Err().Error(), field) {
			t.Errorf("%s: %v", field, is.Err())
		}
	}
}
