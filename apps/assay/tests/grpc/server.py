"""A gRPC server for tests: orders by unary call and by stream, with reflection (v1alpha, as grpcio has it, unless another
version or none is asked for).

Usage: server.py HOST:PORT [CERTIFICATE KEY] [--reflection=v1|v1alpha|none]; server.py --imports"""
import sys
import time
from concurrent import futures

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from grpc_reflection.v1alpha import reflection, reflection_pb2

Field = descriptor_pb2.FieldDescriptorProto
SERVICE = "shop.v1.Orders"


def described():
    """The content of shop.proto, written by hand: so its reader is compared with a description that has not been through it."""
    file = descriptor_pb2.FileDescriptorProto(name="shop.proto", package="shop.v1", syntax="proto3")

    def message(name, *fields):
        made = file.message_type.add(name=name)
        for number, (field, kind, label, of) in enumerate(fields, 1):
            made.field.add(name=field, number=number, type=kind, label=label, type_name=of)

    one, many = Field.LABEL_OPTIONAL, Field.LABEL_REPEATED
    message("GetRequest", ("id", Field.TYPE_STRING, one, None), ("count", Field.TYPE_INT32, one, None))
    message("WatchRequest", ("id", Field.TYPE_STRING, one, None), ("messages", Field.TYPE_UINT32, one, None))
    message(
        "Order",
        ("id", Field.TYPE_STRING, one, None),
        ("state", Field.TYPE_ENUM, one, ".shop.v1.State"),
        ("lines", Field.TYPE_MESSAGE, many, ".shop.v1.Line"),
        ("cents", Field.TYPE_INT64, one, None),
    )
    message("Line", ("item", Field.TYPE_STRING, one, None), ("count", Field.TYPE_UINT32, one, None))
    state = file.enum_type.add(name="State")
    for number, name in enumerate(["UNKNOWN", "PAID", "SENT"]):
        state.value.add(name=name, number=number)
    service = file.service.add(name="Orders")
    service.method.add(name="Get", input_type=".shop.v1.GetRequest", output_type=".shop.v1.Order")
    service.method.add(
        name="Watch", input_type=".shop.v1.WatchRequest", output_type=".shop.v1.Order", server_streaming=True
    )
    service.method.add(
        name="Upload", input_type=".shop.v1.Order", output_type=".shop.v1.Order", client_streaming=True
    )
    pool = descriptor_pool.Default()
    pool.Add(file)
    classes = message_factory.GetMessageClassesForFiles(["shop.proto"], pool)
    return {name.rsplit(".", 1)[1]: made for name, made in classes.items()}


def reflecting(version):
    """The reflection of a version; both have the same messages, in other packages."""
    asked, answered = reflection_pb2.ServerReflectionRequest, reflection_pb2.ServerReflectionResponse
    info = grpc.stream_stream_rpc_method_handler(
        reflection.ReflectionServicer((SERVICE,)).ServerReflectionInfo,
        request_deserializer=asked.FromString,
        response_serializer=answered.SerializeToString,
    )
    name = f"grpc.reflection.{version}.ServerReflection"
    return grpc.method_handlers_generic_handler(name, {"ServerReflectionInfo": info})


def serve(address, arguments):
    option = "--reflection="
    version = next((word.removeprefix(option) for word in arguments if word.startswith(option)), "v1alpha")
    arguments = [word for word in arguments if not word.startswith(option)]
    made = described()
    order = made["Order"]

    def get(request, context):
        """An id that begins with a status's name is answered with that; `slow` takes as long as there is."""
        word = request.id.split("-")[0]
        if word == "slow":
            time.sleep(min(context.time_remaining() or 1, 5) + 0.5)
        if hasattr(grpc.StatusCode, word) and word != "OK":
            context.abort(getattr(grpc.StatusCode, word), f"asked for {word} / 100 %")
        if word == "token" and ("authorization", "Bearer s3cret-token") not in context.invocation_metadata():
            context.abort(grpc.StatusCode.UNAUTHENTICATED, "no token")
        answer = order(id=request.id, state=1, cents=1999)
        answer.lines.add(item="tea", count=max(request.count, 1))
        return answer

    def watch(request, context):
        for number in range(request.messages):
            yield order(id=f"{request.id}-{number}", state=2)
        if request.id == "broken":
            context.abort(grpc.StatusCode.DATA_LOSS, "in the middle")

    handlers = {
        "Get": grpc.unary_unary_rpc_method_handler(
            get, request_deserializer=made["GetRequest"].FromString, response_serializer=order.SerializeToString
        ),
        "Watch": grpc.unary_stream_rpc_method_handler(
            watch, request_deserializer=made["WatchRequest"].FromString, response_serializer=order.SerializeToString
        ),
    }
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=4), options=[("grpc.so_reuseport", 0)])
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, handlers),))
    if version != "none":
        server.add_generic_rpc_handlers((reflecting(version),))
    if arguments:
        certificate, key = (open(path, "rb").read() for path in arguments)
        credentials = grpc.ssl_server_credentials([(key, certificate)])
        server.add_secure_port(address, credentials)
    else:
        server.add_insecure_port(address)
    server.start()
    server.wait_for_termination()


if sys.argv[1] != "--imports":
    serve(sys.argv[1], sys.argv[2:])
