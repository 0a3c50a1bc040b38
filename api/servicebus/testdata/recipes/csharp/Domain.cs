// A domain in C#: Azure.Messaging.ServiceBus, Azure.Storage.Blobs, Google.Protobuf, and
// Grpc.Tools, which makes the classes of contract.proto when the project says
// <Protobuf Include="contract.proto" GrpcServices="None" />
using System.Security.Cryptography;
using System.Text;
using Azure.Messaging.ServiceBus;
using Azure.Storage.Blobs;
using Google.Protobuf;
using Reason = DataBundleResponseContract.Types.RequestFailure.Types.Reason;

public static class Domain
{
    // Properties that messages of the original have. The hub does not need them.
    static ServiceBusMessage Describe(ServiceBusMessage message, string type, string correlation)
    {
        message.ApplicationProperties["OperationTimestamp"] = DateTime.UtcNow.ToString("yyyy-MM-dd'T'HH:mm:ss'Z'");
        message.ApplicationProperties["OperationCorrelationId"] = correlation;
        message.ApplicationProperties["MessageVersion"] = 1;
        message.ApplicationProperties["MessageType"] = type;
        message.ApplicationProperties["EventIdentification"] = Guid.NewGuid().ToString();
        return message;
    }

    // Send tells the hub that data waits; json is one event. Await it before the next
    // event of the same recipient. If it fails, send the same event again: the hub takes
    // its id once.
    public static Task Send(ServiceBusSender sender, string recipient, string json)
    {
        var id = Convert.ToHexString(SHA256.HashData(Encoding.UTF8.GetBytes(recipient + json)))[..32];
        var message = new ServiceBusMessage(json) { MessageId = id, SessionId = recipient, ContentType = "application/json" };
        return sender.SendMessageAsync(Describe(message, "DataAvailable", id));
    }

    // Answer waits for one request of the hub and answers it. Call it again and again,
    // several at a time: a ServiceBusException with the reason ServiceTimeout says that
    // no request waits.
    public static async Task Answer(ServiceBusClient bus, string queue, BlobContainerClient container,
        Func<DataBundleRequestContract, List<Guid>, Task<Stream>> make)
    {
        await using var session = await bus.AcceptNextSessionAsync(queue);
        var message = await session.ReceiveMessageAsync(TimeSpan.FromSeconds(5));
        if (message == null) return; // it has expired
        var request = DataBundleRequestContract.Parser.ParseFrom(message.Body.ToArray());
        var reply = new DataBundleResponseContract { RequestId = request.RequestId, RequestIdempotencyId = request.IdempotencyId };
        try
        {
            var list = await container.GetBlobClient(request.DataAvailableNotificationReferenceId).DownloadContentAsync();
            await using var content = await make(request, EventIds(list.Value.Content.ToArray()));
            var blob = container.GetBlobClient(request.IdempotencyId + "_data");
            await blob.UploadAsync(content, overwrite: true);
            reply.Success = new() { ContentUri = blob.Uri.GetLeftPart(UriPartial.Path) };
        }
        catch (Exception e)
        {
            reply.Failure = new() { Reason = Reason.InternalError, FailureDescription = e.Message };
        }
        await using var sender = bus.CreateSender(queue + "-reply");
        var answer = new ServiceBusMessage(reply.ToByteArray())
        {
            MessageId = request.RequestId, SessionId = request.RequestId, TimeToLive = TimeSpan.FromSeconds(30),
        };
        await sender.SendMessageAsync(Describe(answer, "DataBundleResponse", request.IdempotencyId));
        await session.CompleteMessageAsync(message); // now that it is answered
    }

    // Hear waits for one notice. message id = bundle_actor: the same if it comes again.
    public static async Task Hear(ServiceBusReceiver receiver, Func<string, string, string, Task> take)
    {
        var message = await receiver.ReceiveMessageAsync(TimeSpan.FromSeconds(60));
        if (message == null) return;
        var notice = DequeueContract.Parser.ParseFrom(message.Body.ToArray());
        await take(message.MessageId, notice.MarketOperator, notice.DataAvailableNotificationReferenceId);
        await receiver.CompleteMessageAsync(message); // if take throws, it comes again when its lock has expired
    }

    // EventIds reads a list of ids, 16 bytes each: Guid has just this order.
    static List<Guid> EventIds(byte[] list) => list.Chunk(16).Select(id => new Guid(id)).ToList();
}
