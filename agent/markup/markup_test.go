package markup

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

// tokens formats what a Reader finds. Adjacent texts are merged.
func tokens(page []byte) string {
	var b strings.Builder
	var text []byte
	flush := func() {
		if len(text) > 0 {
			fmt.Fprintf(&b, "text %q\n", text)
		}
		text = nil
	}
	for r := New(page); ; {
		switch kind := r.Next(); kind {
		case End:
			flush()
			return b.String()
		case Text:
			text = append(text, r.Text()...)
		case StartTag, EndTag:
			flush()
			fmt.Fprintf(&b, "tag %d %q", kind, r.Name())
			for key, value, ok := r.Attr(); ok; key, value, ok = r.Attr() {
				fmt.Fprintf(&b, " %q=%q", key, value)
			}
			b.WriteByte('\n')
		}
	}
}

// reference formats what the tokenizer of golang.org/x/net/html finds.
func reference(page []byte) string {
	var b strings.Builder
	var text []byte
	flush := func() {
		if len(text) > 0 {
			fmt.Fprintf(&b, "text %q\n", text)
		}
		text = nil
	}
	for z := html.NewTokenizer(bytes.NewReader(page)); ; {
		switch z.Next() {
		case html.ErrorToken:
			flush()
			return b.String()
		case html.TextToken:
			text = append(text, z.Text()...)
		case html.StartTagToken, html.SelfClosingTagToken:
			flush()
			name, more := z.TagName()
			fmt.Fprintf(&b, "tag %d %q", StartTag, name)
			for more {
				var key, value []byte
				key, value, more = z.TagAttr()
				fmt.Fprintf(&b, " %q=%q", key, value)
			}
			b.WriteByte('\n')
		case html.EndTagToken:
			flush()
			name, _ := z.TagName()
			fmt.Fprintf(&b, "tag %d %q\n", EndTag, name)
		}
	}
}

var pages = []string{
	"", "<", "</", "<a", "<a ", "text", "a<b", "a < b", "a <3 b", "</>x", "</ a>x", "</3>x", "<?xml?>x", "<!>x",
	"<!-x>y", "<!doctype html>x", "<!",
	`<p class=a>one</p><P CLASS='b' ID="c">two<br/><hr />`,
	`<a href="?a=1&amp;b=2&copy=3&copy;&copyx&lt" href=second HREF=third>x</a>`,
	`<a href='it&quot;s "x"' b=un&amp;"'quoted c=/>x`,
	`<a/b/c=d / e>x`,
	`<a =x==y>z`,
	`<a b = "c" d = >x`,
	`<a b="unclosed>x`,
	"<a b=c\rd='e\r\nf'>x\r\ny\rz",
	"<a\x00b c\x00d=e\x00f>g\x00h</a\x00b><title>i\x00j</title><script>k\x00l</script>",
	`<title>a &amp; <b>c</b></title><textarea>&lt;</textarea x><style>&lt;</style ><xmp></xmpx></xmp>y`,
	`<title></title>x<iframe><a></iframe>y<plaintext>a</plaintext><b>`,
	`<script>a<b</script>x<script><!--</script>y<script><!--<script></script></script>z`,
	`<script><!-- <scriptx </script>a<script><!--<script>--></script>b<script><!--<script>-</script>-></script>c`,
	`<script><!--<script </script <b></script>--></script>x<script><!-- <1 </script>y` +
		`<script><!-->--><script></script>z`,
	`<script><!-</script>x<script><!--<</script>y`,
	`<script><!--<script><</script></script>x`,
	`<script></scripty></script`,
	`a<!-- b --><!--><!---><!----><!--!><!--x--!>c<!--x--!-->d<!--x---!>e<!-- > -- > ->f`,
	`a<!--b--!x-->c`,
	`a<!--b`,
	`a<!--b--!`,
	"<div " + strings.Repeat("a=1 B=2 ", 20) + strings.Repeat("c d e f g h i j k l m n o p q r s t u C=3 ", 2) + ">x",
	"&amp;&nbsp;&notit;&#x41;&#0;&unknown;&",
	"<svg><![CDATA[<a>]]></svg>",
	"<ä>x</ä><aä Ö=ü>",
}

func TestMatchesTheStandardTokenizer(t *testing.T) {
	for _, page := range pages {
		if got, want := tokens([]byte(page)), reference([]byte(page)); got != want {
			t.Errorf("%q:\n%swant:\n%s", page, got, want)
		}
	}
}

// The ends of comments and scripts have many cases: all short combinations of
// their delimiters are tried.
func TestCommentAndScriptDelimiters(t *testing.T) {
	signs := []string{"<!--", "-", ">", "<", "/", "!", "<script>", "</script>", "<SCRIPT ", "</", "x", " "}
	var page []byte
	var try func(left int)
	try = func(left int) {
		if got, want := tokens(page), reference(page); got != want {
			t.Fatalf("%q:\n%swant:\n%s", page, got, want)
		}
		if left == 0 {
			return
		}
		for _, sign := range signs {
			page = append(page, sign...)
			try(left - 1)
			page = page[:len(page)-len(sign)]
		}
	}
	for _, beginning := range []string{"", "<script>", "<script><!--", "<script><!--<script>", "<!--"} {
		page = []byte(beginning)
		try(3)
	}
}

func FuzzReader(f *testing.F) {
	for _, page := range pages {
		f.Add([]byte(page))
	}
	f.Fuzz(func(t *testing.T, page []byte) {
		before := bytes.Clone(page)
		if got, want := tokens(page), reference(page); got != want {
			t.Errorf("%q:\n%swant:\n%s", page, got, want)
		}
		if !bytes.Equal(page, before) {
			t.Errorf("%q was changed to %q", before, page)
		}
	})
}

func BenchmarkReader(b *testing.B) {
	for name, unit := range map[string]string{
		"prose": "<p>" + strings.Repeat("A sentence about the harbour and its bakery. ", 20) + "</p>",
		"links": `<li class="nav-item"><a class="nav-link" href="/42"><span class="nav-label">Chapter</span></a></li>`,
	} {
		page := []byte(strings.Repeat(unit, 100<<10/len(unit)))
		b.Run(name+"/markup", func(b *testing.B) {
			b.SetBytes(int64(len(page)))
			for b.Loop() {
				for r := New(page); r.Next() != End; {
				}
			}
		})
		b.Run(name+"/html", func(b *testing.B) {
			b.SetBytes(int64(len(page)))
			for b.Loop() {
				for z := html.NewTokenizer(bytes.NewReader(page)); z.Next() != html.ErrorToken; {
				}
			}
		})
	}
}
