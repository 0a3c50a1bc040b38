// A domain in Java, with com.azure:azure-messaging-servicebus, com.azure:azure-storage-blob
// and com.google.protobuf:protobuf-java. Generate Contract.java by:
// protoc --java_out=. contract.proto
import com.azure.core.util.BinaryData;
import com.azure.messaging.servicebus.ServiceBusClientBuilder;
import com.azure.messaging.servicebus.ServiceBusMessage;
import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import com.azure.messaging.servicebus.ServiceBusSenderClient;
import com.azure.messaging.servicebus.ServiceBusSessionReceiverClient;
import com.azure.storage.blob.BlobClient;
import com.azure.storage.blob.BlobContainerClient;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.UUID;

public final class Domain {
    public interface ContentProducer {
        InputStream produce(Contract.DataBundleRequestContract request, List<UUID> events) throws Exception;
    }

    public interface NoticeHandler {
        void handle(String id, String actor, String list) throws Exception;
    }

    // properties returns the properties that messages of the original MessageHub have. The hub
    // does not need them.
    static Map<String, Object> properties(String type, String correlation) {
        return Map.of(
            "OperationTimestamp", Instant.now().truncatedTo(ChronoUnit.SECONDS).toString(),
            "OperationCorrelationId", correlation,
            "MessageVersion", 1,
            "MessageType", type,
            "EventIdentification", UUID.randomUUID().toString());
    }

    // sendEvent announces data to the hub; json is one event. Send the events of a
    // recipient one after the other. If it fails, send the same event again: the hub
    // stores an event id once.
    public static void sendEvent(ServiceBusSenderClient sender, String recipient, String json) {
        String id = UUID.nameUUIDFromBytes((recipient + json).getBytes(StandardCharsets.UTF_8)).toString();
        ServiceBusMessage message = new ServiceBusMessage(BinaryData.fromString(json))
            .setMessageId(id).setSessionId(recipient).setContentType("application/json");
        message.getApplicationProperties().putAll(properties("DataAvailable", id));
        sender.sendMessage(message);
    }

    // answerRequest waits for a request of the hub and replies to it. Call it in a loop, in
    // several threads. If no request waits, acceptNextSession times out.
    public static void answerRequest(String connection, String queue, BlobContainerClient container, ContentProducer producer) throws Exception {
        try (ServiceBusSessionReceiverClient sessions =
                 new ServiceBusClientBuilder().connectionString(connection).sessionReceiver().queueName(queue).disableAutoComplete().buildClient();
             ServiceBusReceiverClient session = sessions.acceptNextSession();
             ServiceBusSenderClient sender =
                 new ServiceBusClientBuilder().connectionString(connection).sender().queueName(queue + "-reply").buildClient()) {
            for (ServiceBusReceivedMessage message : session.receiveMessages(1, Duration.ofSeconds(5))) {
                Contract.DataBundleRequestContract request = Contract.DataBundleRequestContract.parseFrom(message.getBody().toBytes());
                Contract.DataBundleResponseContract.Builder reply = Contract.DataBundleResponseContract.newBuilder()
                    .setRequestId(request.getRequestId()).setRequestIdempotencyId(request.getIdempotencyId());
                try {
                    byte[] list = container.getBlobClient(request.getDataAvailableNotificationReferenceId()).downloadContent().toBytes();
                    InputStream content = producer.produce(request, eventIds(list));
                    BlobClient blob = container.getBlobClient(request.getIdempotencyId() + "_data");
                    blob.upload(content, true); // replaces an existing blob
                    reply.getSuccessBuilder().setContentUri(blob.getBlobUrl().split("\\?")[0]);
                } catch (Exception e) {
                    reply.getFailureBuilder().setFailureDescription(String.valueOf(e.getMessage()))
                        .setReason(Contract.DataBundleResponseContract.RequestFailure.Reason.InternalError);
                }
                ServiceBusMessage response = new ServiceBusMessage(BinaryData.fromBytes(reply.build().toByteArray()))
                    .setMessageId(request.getRequestId()).setSessionId(request.getRequestId()).setTimeToLive(Duration.ofSeconds(30));
                response.getApplicationProperties().putAll(properties("DataBundleResponse", request.getIdempotencyId()));
                sender.sendMessage(response);
                session.complete(message); // only after the reply was sent
            }
        }
    }

    // receiveNotice waits for a notice. The message id is BUNDLE_ACTOR, and is the same if the
    // notice is delivered again.
    public static void receiveNotice(ServiceBusReceiverClient receiver, NoticeHandler handler) throws Exception {
        for (ServiceBusReceivedMessage message : receiver.receiveMessages(1, Duration.ofSeconds(60))) {
            Contract.DequeueContract notice = Contract.DequeueContract.parseFrom(message.getBody().toBytes());
            handler.handle(message.getMessageId(), notice.getMarketOperator(), notice.getDataAvailableNotificationReferenceId());
            receiver.complete(message); // if handle throws, the notice is delivered again when its lock has expired
        }
    }

    // eventIds decodes a list of ids: 16 bytes each, with the bytes of the first three groups
    // reversed.
    static List<UUID> eventIds(byte[] list) {
        List<UUID> ids = new ArrayList<>();
        for (ByteBuffer b = ByteBuffer.wrap(list); b.hasRemaining(); ) {
            b.order(ByteOrder.LITTLE_ENDIAN);
            long high = (long) b.getInt() << 32 | (b.getShort() & 0xffffL) << 16 | b.getShort() & 0xffffL;
            ids.add(new UUID(high, b.order(ByteOrder.BIG_ENDIAN).getLong()));
        }
        return ids;
    }

    private Domain() {}
}
