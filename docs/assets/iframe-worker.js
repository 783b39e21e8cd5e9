/* Browsers start no worker from a page that is opened as a file. The search then runs its worker's
   script in a hidden frame instead, which this class makes look like a worker. */
if (location.protocol === "file:") {
  window.IFrameWorker = class extends EventTarget {
    constructor(url) {
      super();
      this.waiting = [];
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.append(this.frame);
      const inner = this.frame.contentWindow;
      inner.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      const script = inner.document.createElement("script");
      script.src = new URL(url, document.baseURI);
      script.onload = () => {
        const held = this.waiting;
        this.waiting = null;
        held.forEach((data) => this.postMessage(data));
      };
      inner.document.body.append(script);
    }
    postMessage(data) {
      if (this.waiting) this.waiting.push(data);
      else this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data }));
    }
    terminate() {
      this.frame.remove();
    }
  };
  window.Worker = window.IFrameWorker;
}
