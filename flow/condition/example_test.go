package condition_test

import (
	"fmt"

	"satchel/flow/condition"
)

func ExampleEval() {
	conditions, err := condition.Parse("conditions", []any{
		map[string]any{"left": "10", "operator": "gt", "right": 9.0},
		map[string]any{"left": []any{"vip", "new"}, "operator": "contains", "right": "vip"},
	})
	if err != nil {
		panic(err)
	}
	fmt.Println(condition.Eval("and", conditions))
	// Output: true <nil>
}
