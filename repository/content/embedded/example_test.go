package embedded_test

import (
	"context"
	"fmt"
	"io"
	"log"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"

	"github.com/messagehub/messagehub/repository/content/embedded"
)

// The azblob client uses an account in memory without a port.
func Example() {
	account, err := embedded.Open(embedded.Options{Containers: []string{"greetings"}})
	if err != nil {
		log.Fatal(err)
	}
	defer account.Close()
	client, err := azblob.NewClientFromConnectionString(account.ConnectionString(""), &azblob.ClientOptions{
		ClientOptions: azcore.ClientOptions{Transport: account.Transport()},
	})
	if err != nil {
		log.Fatal(err)
	}

	ctx := context.Background()
	if _, err := client.UploadBuffer(ctx, "greetings", "first", []byte("hello"), nil); err != nil {
		log.Fatal(err)
	}
	resp, err := client.DownloadStream(ctx, "greetings", "first", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(text))
	// Output: hello
}
