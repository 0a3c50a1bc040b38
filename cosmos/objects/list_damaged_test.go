package objects

import (
	"fmt"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/accounttest"
	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/objecttest"
	"github.com/messagehub/messagehub/repository"
)

// In each order and with pages of any size, a list contains each readable object once, and reports each
// damaged object once.
func TestList_OmitsDamagedObjects(t *testing.T) {
	const shards = 3
	node := New(accounttest.New(t, embedded.Options{}, Containers()).Connect(), Options{Shards: shards})
	var readable, damaged []string
	for i := range 30 {
		name := must(domain.ParseObjectName("bucket", fmt.Sprintf("key%02d", i)))
		_, err := node.Ingest(t.Context(), []repository.ObjectReport{{Name: name, ObjectEvent: objecttest.Calls("[C@10]")[0][0]}})
		require.NoError(t, err)
		if i%4 > 0 && i < 29 {
			readable = append(readable, name.Key())
			continue
		}
		damaged = append(damaged, name.Key())
		var change azcosmos.PatchOperations
		change.AppendSet("/events", "many")
		key := azcosmos.NewPartitionKeyString(shardKey("bucket", shardOf(name.Key(), shards)))
		_, err = node.objects.PatchItem(t.Context(), key, objectID(name.Key()), change, nil)
		require.NoError(t, err)
	}
	for _, anyOrder := range []bool{false, true} {
		for _, limit := range []int{1, 2, 5, 100} {
			var found, reported []string
			for r := (repository.ObjectRange{Bucket: "bucket", AnyOrder: anyOrder}); ; {
				page, err := node.List(t.Context(), r, limit)
				require.NoError(t, err)
				for i := range page.Objects {
					found = append(found, page.Objects[i].Name.Key())
				}
				for _, d := range page.Damaged {
					require.Equal(t, domain.Damaged, domain.KindOf(d.Err))
					reported = append(reported, d.Key)
				}
				if r.After = page.After; !page.More {
					break
				}
			}
			require.ElementsMatch(t, readable, found)
			require.ElementsMatch(t, damaged, reported)
			require.True(t, anyOrder || found[0] == readable[0] && found[len(found)-1] == readable[len(readable)-1])
		}
	}
}
