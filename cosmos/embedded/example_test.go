package embedded_test

import (
	"context"
	"fmt"
	"log"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/messagehub/messagehub/cosmos/embedded"
)

// The client is Microsoft's client for Azure. Only its transport differs.
func ExampleOpen() {
	engine, err := embedded.Open(embedded.Options{}) // with Dir, the account is stored on disk
	if err != nil {
		log.Fatal(err)
	}
	cred, err := azcosmos.NewKeyCredential(engine.Key())
	if err != nil {
		log.Fatal(err)
	}
	client, err := azcosmos.NewClientWithKey(engine.Endpoint(), cred, &azcosmos.ClientOptions{
		ClientOptions: azcore.ClientOptions{Transport: engine.Transport()},
	})
	if err != nil {
		log.Fatal(err)
	}
	_, err = client.CreateDatabase(context.Background(), azcosmos.DatabaseProperties{ID: "hub"}, nil)
	fmt.Println(err)
	client.Close()
	fmt.Println(engine.Close())
	// Output:
	// <nil>
	// <nil>
}
