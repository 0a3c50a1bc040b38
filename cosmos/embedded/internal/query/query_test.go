package query

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/embedded/internal/rawjson"
)

var params = map[string]Value{"@n": {Kind: Number, Num: 1}, "@s": {Kind: String, Text: []byte("x")}}

func TestAQueryBeyondTheSubsetIsRefusedWithItsPosition(t *testing.T) {
	for text, at := range map[string]int{
		"":                                          0,
		"SELECT * ":                                 9,
		"SELECT DISTINCT c.a FROM c":                7,
		"SELECT * FROM c JOIN d IN c.list":          16,
		"SELECT * FROM c GROUP BY c.a":              16,
		"SELECT COUNT(1) FROM c":                    7,
		"SELECT c.a + 1 FROM c":                     11,
		"SELECT a FROM c":                           7,
		"SELECT * FROM c d WHERE c.a = 1":           24,
		"SELECT * FROM c WHERE c.a LIKE 'x'":        26,
		"SELECT * FROM c WHERE LOWER(c.a)":          22,
		"SELECT * FROM c WHERE c.a = @none":         28,
		"SELECT * FROM c WHERE c.a = 'x":            28,
		"SELECT * FROM c WHERE c.a = 1 c":           30,
		"SELECT * FROM c WHERE c.a = 1 AND":         33,
		"SELECT * FROM c WHERE c.a IN ()":           31,
		"SELECT * FROM c WHERE (c.a = 1":            30,
		"SELECT * FROM c WHERE c.a NOT = 1":         30,
		"SELECT * FROM c WHERE c.a = 1;":            29,
		"SELECT * FROM c WHERE c.a[1.5] = 1":        26,
		"SELECT * FROM c ORDER BY 1":                25,
		"SELECT * FROM c ORDER BY c":                25,
		"SELECT * FROM c ORDER c.a":                 22,
		"SELECT TOP -1 * FROM c":                    11,
		"SELECT TOP 1.5 * FROM c":                   11,
		"SELECT TOP 1 * FROM c OFFSET 1 LIMIT 1":    22,
		"SELECT * FROM c OFFSET 1":                  24,
		"SELECT c.a, c.a FROM c":                    12,
		"SELECT VALUE SUM(c.a, c.b) FROM c":         13,
		"SELECT VALUE COUNT(1) FROM c ORDER BY c.a": 29,
		"SELECT VALUE {'a': 1} FROM c":              13,
		"SELECT * FROM c WHERE IS_NULL(c.a, 1)":     22,
		"SELECT * FROM c.list":                      15,
	} {
		_, err := Parse(text, params)
		var refused *Error
		require.ErrorAs(t, err, &refused, text)
		require.Equal(t, at, refused.Position, "%s: %v", text, err)
	}
}

// FuzzParse parses any text and runs what it accepts.
func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"SELECT * FROM c", "SELECT TOP 3 VALUE c.a.b FROM c WHERE c[\"x\"][0] >= -1.5e3 AND NOT c.y IN (1, 'a', null) ORDER BY c.a DESC, c.b",
		"select c.a as b, 'x' from root c where (c.n between @n and 2) or is_defined(c.z) offset 1 limit 2",
		"SELECT VALUE COUNT(1) FROM c WHERE c.s != @s", "FROM c WHERE c.a = 1", "SELECT VALUE MAX(c.a) FROM c", strings.Repeat("(", 500), "SELECT * FROM c WHERE " + strings.Repeat("NOT ", 300) + "true",
	} {
		f.Add(s, `{"id":"x","a":{"b":1},"n":1,"s":"x","x":[1]}`)
	}
	f.Fuzz(func(t *testing.T, text, doc string) {
		for _, parse := range []func(string) (*Query, error){
			func(s string) (*Query, error) { return Parse(s, params) }, ParseCondition,
		} {
			q, err := parse(text)
			var refused *Error
			if err != nil {
				require.True(t, errors.As(err, &refused))
				require.GreaterOrEqual(t, refused.Position, 0)
				require.LessOrEqual(t, refused.Position, len(text))
				continue
			}
			slots := make([][]byte, q.Slots())
			q.Extract([]byte(doc), slots)
			plan := q.Plan(func(path rawjson.Path) bool { return len(path) == 1 })
			require.Equal(t, q.Holds([]byte(doc)), plan.Loads(slots) && plan.Keeps(slots), "a plan finds what the condition holds for")
			if q.Gives(slots) {
				_ = q.Project(nil, []byte(doc), slots)
			}
			key := q.SortKey(nil, slots)
			require.Zero(t, q.CompareKeys(key, key))
			if q.Aggregates() {
				sum := q.NewAggregate()
				sum.Add(slots)
				_ = sum.Result()
			}
		}
	})
}

func TestValuesOfAllTypesSortAsInCosmos(t *testing.T) {
	order := []string{"", "null", "false", "true", "-1", "0", "1e3", `""`, `"a"`, `"b"`, "[1]", "{}"}
	for i, a := range order {
		for j, b := range order {
			c := Compare(ParseValue([]byte(a)), ParseValue([]byte(b)))
			require.Equal(t, btoi(i > j)-btoi(i < j), c, "%s, %s", a, b)
		}
	}
}
