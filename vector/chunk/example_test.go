package chunk_test

import (
	"context"
	"fmt"

	"satchel/vector/chunk"
	"satchel/vector/document"
)

func ExampleSplit() {
	doc := document.Markdown(
		"# Returns\n\nBread can be returned within two days.\n\n# Opening hours\n\nWe are open from 9 to 17.\n",
		document.Limits{},
	)
	chunks, err := chunk.Split(context.Background(), doc, chunk.Config{Size: 60, Method: chunk.Markdown})
	if err != nil {
		panic(err)
	}
	for _, c := range chunks {
		fmt.Printf("%d %s: %q\n", c.Position, c.Heading, c.Content)
	}
	// Output:
	// 0 Returns: "# Returns\n\nBread can be returned within two days."
	// 1 Opening hours: "# Opening hours\n\nWe are open from 9 to 17."
}
