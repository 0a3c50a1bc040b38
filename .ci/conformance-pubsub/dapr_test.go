package conformance

import (
	"maps"
	"os"
	"testing"

	"github.com/dapr/components-contrib/pubsub"
	"github.com/dapr/components-contrib/pubsub/azure/servicebus/queues"
	"github.com/dapr/components-contrib/pubsub/azure/servicebus/topics"
	suite "github.com/dapr/components-contrib/tests/conformance/pubsub"
	"github.com/dapr/kit/logger"
	"github.com/stretchr/testify/require"
)

// TestDapr runs the conformance tests with the operations and settings of these
// components in tests/config/pubsub/tests.yml of Dapr.
func TestDapr(t *testing.T) {
	connection := os.Getenv("SERVICEBUS_CONNECTION_STRING")
	require.NotEmpty(t, connection, "run make conformance-pubsub, which starts the emulator")
	log := logger.NewLogger("dapr")
	log.SetOutputLevel(logger.ErrorLevel)
	for _, component := range []struct {
		name, topic string
		pubsub      pubsub.PubSub
		properties  map[string]string
	}{
		{"azure.servicebus.queues", "dapr-conf-queue", queues.NewAzureServiceBusQueues(log), nil},
		{"azure.servicebus.topics", "dapr-conf-test", topics.NewAzureServiceBusTopics(log), map[string]string{"consumerID": "testConsumer"}},
	} {
		t.Run(component.name, func(t *testing.T) {
			properties := map[string]string{"connectionString": connection}
			maps.Copy(properties, component.properties)
			config, err := suite.NewTestConfig(component.name, []string{"bulkpublish", "bulksubscribe"}, map[string]any{
				"pubsubName": "azure-servicebus", "testTopicName": component.topic, "testTopicForBulkSub": component.topic + "-bulk",
				"testMultiTopic1Name": component.topic + "-multi1", "testMultiTopic2Name": component.topic + "-multi2",
				"checkInOrderProcessing": false,
			})
			require.NoError(t, err)
			suite.ConformanceTests(t, properties, component.pubsub, config)
		})
	}
}
