"""Decodes a trace of Perfetto by Google's library for protocol buffers, and prints it as JSON. Fails if
the trace has a field that perfetto.proto does not have.

usage: decode_perfetto.py TRACE
"""

import pathlib
import subprocess
import sys
import tempfile

from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory


def trace_type():
    proto = pathlib.Path(__file__).with_name("perfetto.proto")
    with tempfile.TemporaryDirectory() as folder:
        described = pathlib.Path(folder) / "set"
        subprocess.run(
            ["protoc", f"--proto_path={proto.parent}", f"--descriptor_set_out={described}", proto.name], check=True
        )
        files = descriptor_pb2.FileDescriptorSet.FromString(described.read_bytes())
    pool = descriptor_pool.DescriptorPool()
    pool.Add(files.file[0])
    return message_factory.MessageFactory(pool).GetPrototype(pool.FindMessageTypeByName("Trace"))


def check_fields(message):
    assert len(message.UnknownFields()) == 0, f"an unknown field of {message.DESCRIPTOR.name}: {message}"
    for field, value in message.ListFields():
        if field.message_type is not None:
            for part in value if field.label == field.LABEL_REPEATED else [value]:
                check_fields(part)


def main():
    trace = trace_type().FromString(pathlib.Path(sys.argv[1]).read_bytes())
    check_fields(trace)
    print(json_format.MessageToJson(trace, preserving_proto_field_name=True))


main()
