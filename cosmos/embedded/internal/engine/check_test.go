package engine

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/embedded/disk"
)

// TestCheck_FindsEveryKindOfDamage removes, changes or adds one entry of each kind. Check must report each.
func TestCheck_FindsEveryKindOfDamage(t *testing.T) {
	const pk = Partition(`["p"]`)
	build := func(t *testing.T) (*Engine, *Container) {
		e, c := testContainer(t, defaultPolicy+`,"uniqueKeyPolicy":{"uniqueKeys":[{"paths":["/n"]}]}`)
		for i := range 3 {
			doc, err := c.ParseDocument(fmt.Appendf(nil, `{"id":"%d","pk":"p","n":%d,"data":%q}`, i, i, strings.Repeat("x", i*4000)), false)
			require.NoError(t, err)
			_, err = e.Write(t.Context(), c, pk, []Op{{Kind: Create, Doc: doc}}, Consistency{})
			require.NoError(t, err)
		}
		return e, c
	}
	problems := func(e *Engine) (found []string) {
		census, err := e.Check(func(problem string) { found = append(found, problem) })
		require.NoError(t, err)
		require.Equal(t, len(found), census.Problems)
		return found
	}
	sound, _ := build(t)
	require.Empty(t, problems(sound))
	for _, kind := range []byte("DIBPLU") {
		for name, damage := range map[string]func(tx disk.Tx, key, value []byte){
			"lost":    func(tx disk.Tx, key, _ []byte) { tx.Delete(key) },
			"changed": func(tx disk.Tx, key, value []byte) { value[len(value)-1] ^= 1; tx.Put(key, value) },
			"added": func(tx disk.Tx, key, value []byte) {
				key[len(key)-1] ^= 0x40
				tx.Put(key, value)
			},
			"cut short": func(tx disk.Tx, key, value []byte) { tx.Put(key, value[:3]) },
		} {
			if kind == 'P' && name == "lost" {
				continue // a partition without a record has no writes
			}
			e, c := build(t)
			prefix := containerPrefix(kind, c.number)
			var keys, values [][]byte
			require.NoError(t, e.store.View(func(r disk.Reader) error {
				r.Scan(prefix, endOfPrefix(prefix), func(key, value []byte) bool {
					keys, values = append(keys, append([]byte{}, key...)), append(values, append([]byte{}, value...))
					return true
				})
				return nil
			}))
			require.NotEmpty(t, keys)
			require.NoError(t, e.store.Update(t.Context(), func(tx disk.Tx) error {
				damage(tx, keys[len(keys)-1], values[len(keys)-1])
				return nil
			}))
			require.NotEmpty(t, problems(e), "an entry of kind %c is %s", kind, name)
		}
	}
}
