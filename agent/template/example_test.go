package template_test

import (
	"fmt"

	"satchel/agent/template"
)

func ExampleRender() {
	data := map[string]any{
		"text": "Hello {{contact.name}}, your order is {{order.status | default:\"unknown\"}}.",
		"tags": "{{contact.tags}}",
	}
	scope := template.Map{
		"contact": map[string]any{"name": "Ada", "tags": []any{"vip", "new"}},
		"order":   map[string]any{},
	}
	filled, warnings, err := template.Render(data, scope, template.Options{})
	if err != nil {
		panic(err)
	}
	object := filled.(map[string]any)
	fmt.Println(object["text"])
	fmt.Println(object["tags"].([]any)[0])
	fmt.Println(len(warnings))
	// Output:
	// Hello Ada, your order is unknown.
	// vip
	// 0
}

func ExamplePath_Walk() {
	path, err := template.ParsePath(`items[1]["First name"]`)
	if err != nil {
		panic(err)
	}
	value, ok := path.Walk(map[string]any{"items": []any{
		map[string]any{"First name": "Ada"},
		map[string]any{"First name": "Grace"},
	}})
	fmt.Println(value, ok)
	// Output: Grace true
}
