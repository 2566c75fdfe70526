// What all pages of one browser share: the stream of what happens in the run is asked for once, because a browser opens
// six connections to a host at most. A page that comes makes it begin anew, so that it is told everything.
(function () {
  "use strict";
  const ports = new Set();
  let events = null;
  const tell = (message) => ports.forEach((port) => port.postMessage(message));
  function begin() {
    events?.close();
    events = new EventSource("events");
    events.onopen = () => tell({ is: "open" });
    events.onerror = () => tell({ is: "error" });
    events.onmessage = (event) => tell({ is: "told", text: event.data });
  }
  self.onconnect = ({ ports: [port] }) => {
    ports.add(port);
    port.onmessage = ({ data }) => {
      if (data !== "leaves") return;
      ports.delete(port);
      if (ports.size === 0) { events?.close(); events = null; }
    };
    port.start();
    begin();
  };
})();
