package embedded_test

import (
	"context"
	"fmt"
	"log"
	"net"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"github.com/messagehub/messagehub/api/servicebus/embedded"
)

// The azservicebus client uses a namespace in memory without a port.
func Example() {
	namespace, err := embedded.Open(embedded.Options{CreateOnUse: true})
	if err != nil {
		log.Fatal(err)
	}
	defer namespace.Close()
	client, err := azservicebus.NewClientFromConnectionString(namespace.ConnectionString(""), &azservicebus.ClientOptions{
		NewWebSocketConn: func(ctx context.Context, _ azservicebus.NewWebSocketConnArgs) (net.Conn, error) {
			return namespace.Dial(ctx)
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	defer client.Close(ctx)

	sender, err := client.NewSender("greetings", nil)
	if err != nil {
		log.Fatal(err)
	}
	if err := sender.SendMessage(ctx, &azservicebus.Message{Body: []byte("hello")}, nil); err != nil {
		log.Fatal(err)
	}
	receiver, err := client.NewReceiverForQueue("greetings", nil)
	if err != nil {
		log.Fatal(err)
	}
	messages, err := receiver.ReceiveMessages(ctx, 1, nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(messages[0].Body))
	if err := receiver.CompleteMessage(ctx, messages[0], nil); err != nil {
		log.Fatal(err)
	}
	// Output: hello
}
