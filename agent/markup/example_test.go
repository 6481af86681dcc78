package markup_test

import (
	"fmt"

	"satchel/agent/markup"
)

func ExampleReader() {
	page := markup.New([]byte(`<p>Read the <a href="/docs?a=1&amp;b=2">docs</a></p>`))
	for {
		switch page.Next() {
		case markup.End:
			return
		case markup.Text:
			fmt.Printf("text %q\n", page.Text())
		case markup.StartTag:
			fmt.Printf("start of %s\n", page.Name())
			for key, value, ok := page.Attr(); ok; key, value, ok = page.Attr() {
				fmt.Printf("  %s = %s\n", key, value)
			}
		case markup.EndTag:
			fmt.Printf("end of %s\n", page.Name())
		}
	}
	// Output:
	// start of p
	// text "Read the "
	// start of a
	//   href = /docs?a=1&b=2
	// text "docs"
	// end of a
	// end of p
}
